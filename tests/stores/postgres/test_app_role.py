"""The role of an app, as `rota.grant_to()` makes it: it works, and gives itself no rights and ends no legal hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote, urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from kept import an_ended_job, set_policy
from rota._core.actions import AuditFilter
from rota._core.retention import EVERYTHING, Policy
from rota._core.token import Role
from rota.admin import Admin
from rota.errors import PermissionMissing
from rota.stores.postgres import PostgresStore
from rota.stores.retention_contract import Retention

FORGERIES = {
    "tokens": (
        """INSERT INTO rota.tokens (id, name, role, digest, created_by, created_at)
        VALUES ('abcdefgh2345', 'me', 'manager', repeat('0', 64), 'me', now())""",
        "UPDATE rota.tokens SET role = 'manager'",
        "UPDATE rota.tokens SET revoked_at = NULL, expires_at = NULL, last_used_at = now()",
        "DELETE FROM rota.tokens",
        "TRUNCATE rota.tokens",
    ),
    "retention": (
        "INSERT INTO rota.retention (keep, set_by, set_at) VALUES (0, 'me', now())",
        "UPDATE rota.retention SET keep = 0",
        "DELETE FROM rota.retention",
        "TRUNCATE rota.retention",
    ),
}


@pytest.fixture
async def theirs(
    fresh_database: str, clock, administrator: psycopg.Connection
) -> AsyncIterator[PostgresStore]:
    """The store of an app that has a role of its own."""
    role = f"app_{uuid4().hex[:8]}"
    administrator.execute(f"CREATE ROLE {role}")
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute("SELECT rota.open_days(%(now)s), rota.make_months(%(now)s)", {"now": clock.now})
        connection.execute("SELECT rota.grant_to(%s)", [role])
        separator = "&" if "?" in fresh_database else "?"
        store = PostgresStore(f"{fresh_database}{separator}options=-crole%3D{role}", clock=clock)
        yield store
        await store.close()
        connection.execute(f"DROP OWNED BY {role}")
    administrator.execute(f"DROP ROLE {role}")


@pytest.mark.parametrize("table", FORGERIES)
async def test_an_app_writes_neither_tokens_nor_retention_past_the_audit(theirs, store, table):
    await Admin(store, actor="ann").create_token("grafana")
    await set_policy(store, Policy(None, tenant="acme", reason="legal hold"))
    async with theirs._desks().connections.connection() as connection:
        for forgery in FORGERIES[table]:
            with pytest.raises(pg.InsufficientPrivilege, match=f"permission denied for table {table}"):
                await connection.execute(forgery)


async def test_who_is_not_the_owner_learns_who_makes_tokens_and_policies(theirs):
    admin = Admin(theirs, actor="me")
    with pytest.raises(PermissionMissing) as token:
        await admin.create_token("mine", role=Role.MANAGER)
    with pytest.raises(PermissionMissing) as policy:
        await set_policy(theirs, Policy(60.0))

    for refused, what in ((token, "Access tokens"), (policy, "Retention policies")):
        assert str(refused.value).endswith(
            f". {what} are made, changed and removed by the owner of schema rota only, so that no app gives itself "
            "rights: run this again with the owner's address (--url or ROTA_URL)."
        )
    assert await theirs.audit_trail(AuditFilter()) == []


async def test_an_app_checks_tokens_notes_their_use_and_purges_by_the_policies(theirs, store, clock):
    made = await Admin(store, actor="ann").create_token("grafana")
    await set_policy(store, Policy(3600.0, task="ping"))
    job = await an_ended_job(theirs, task="ping")
    clock.advance(2 * 3600)

    token = await Admin(theirs, actor="face").check_token(made.text)
    pruned = await theirs.prune(EVERYTHING, Retention())

    assert token is not None
    assert [seen.last_used_at for seen in await theirs.tokens()] == [clock.now]
    assert pruned.finished == 1
    assert [kept.id for kept in await theirs.archived([job.id])] == [job.id]


async def test_a_role_of_any_name_is_told_whether_it_may_change_anything(
    direct_database: str, administrator: psycopg.Connection
):
    """Roles are called by capitals and dots too: clouds name them after people."""
    name = f"Ann.{uuid4().hex[:8]}@Example"
    role = sql.Identifier(name)
    administrator.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
    parts = urlsplit(direct_database)
    address = parts._replace(netloc=parts.netloc.replace("rota@", f"{quote(name)}@")).geturl()
    with psycopg.connect(direct_database, autocommit=True) as connection:
        connection.execute("SELECT rota.grant_to(%s)", [name])
        store = PostgresStore(address)
        before = await store.refuses_changes()
        connection.execute(sql.SQL("ALTER ROLE {} SET default_transaction_read_only = on").format(role))
        after = await store.refuses_changes()
        room = await store.room()
        await store.close()
        connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
    administrator.execute(sql.SQL("DROP ROLE {}").format(role))

    assert (before, room.read_only) == (None, True)
    assert "is set to read only" in (after or "")
