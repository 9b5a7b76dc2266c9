"""Who owns the database and changes the audit behind its triggers is found out, and the first bad row is named."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest

from build import NOON
from rota._core.actions import Audit, AuditFilter
from rota.admin import Admin
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.faults import repeatable


@pytest.fixture
async def store(fresh_database, clock) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(fresh_database, clock=clock)
    yield store
    await store.close()


@pytest.fixture
async def rows(store, clock) -> list[int]:
    """Five rows, an hour apart; their places, oldest first."""
    for name in ("ann", "bob", "cid", "dan", "eve"):
        clock.advance(3600)
        await store.note(Audit(name, "looked", None, f"reason of {name}"))
    return [row.place for row in reversed(await store.audit_trail(AuditFilter()))]


async def behind_the_triggers(url: str, *statements: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("SET session_replication_role = replica")
        for text in statements:
            await connection.execute(text)


async def fault(store, expected: str | None = None) -> str:
    return (await Admin(store, actor="ann").verify_audit(expected)).fault or "none"


async def test_a_row_that_was_changed_is_named(store, fresh_database, rows):
    await behind_the_triggers(fresh_database, f"UPDATE rota.audit SET actor = 'nobody' WHERE id = {rows[2]}")

    assert await fault(store) == (
        f"row {rows[2]} of {(NOON + timedelta(hours=3)).isoformat()} is not as it was written (looked by nobody)"
    )


async def test_a_row_that_was_taken_out_is_named(store, fresh_database, rows):
    await behind_the_triggers(fresh_database, f"DELETE FROM rota.audit WHERE id = {rows[1]}")

    assert f"row {rows[1]} " in await fault(store)
    assert "is gone, and no row tells of its removal" in await fault(store)


async def test_a_row_that_was_taken_out_with_its_seal_leaves_a_gap(store, fresh_database, rows):
    await behind_the_triggers(
        fresh_database,
        f"DELETE FROM rota.audit WHERE id = {rows[1]}",
        f"DELETE FROM rota.audit_seals WHERE audit_id = {rows[1]}",
    )

    assert (await fault(store)).startswith("seal 2 is gone")


async def test_rows_that_changed_places_are_named(store, fresh_database, rows):
    one, two = rows[1:3]
    await behind_the_triggers(
        fresh_database,
        f"UPDATE rota.audit_seals SET audit_id = -1 WHERE audit_id = {one}",
        f"UPDATE rota.audit_seals SET audit_id = {one} WHERE audit_id = {two}",
        f"UPDATE rota.audit_seals SET audit_id = {two} WHERE audit_id = -1",
    )

    assert f"row {two} " in await fault(store)


async def test_a_seal_that_was_made_to_fit_a_changed_row_does_not_follow(store, fresh_database, rows):
    await behind_the_triggers(
        fresh_database, f"UPDATE rota.audit_seals SET digest = sha256('x') WHERE audit_id = {rows[3]}"
    )

    assert f"the seal of row {rows[3]} " in await fault(store)


async def test_an_end_that_was_cut_off_is_found_by_the_head_that_was_kept(store, fresh_database, rows):
    head = (await Admin(store, actor="ann").verify_audit()).head
    await behind_the_triggers(
        fresh_database,
        f"DELETE FROM rota.audit WHERE id >= {rows[3]}",
        f"DELETE FROM rota.audit_seals WHERE audit_id >= {rows[3]}",
    )

    assert await fault(store) == "none"  # nothing in the database tells of it
    assert "its end was cut off, or it was made anew" in await fault(store, head)


async def test_a_row_that_was_added_behind_the_triggers_is_named(store, fresh_database, rows):
    await behind_the_triggers(
        fresh_database,
        f"INSERT INTO rota.audit (at, actor, action) VALUES ('{NOON.isoformat()}', 'ann', 'approved')",
    )

    assert "has no seal: it was added with the triggers" in await fault(store)


async def test_what_was_removed_on_purpose_is_no_fault_and_is_counted(store, fresh_database, rows):
    async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection:
        await connection.execute("SET timezone = 'Asia/Kolkata'")  # what is told does not depend on it
        await connection.execute(
            "SELECT rota.remove_audit(%s, 'ann', 'policy')", [NOON + timedelta(hours=2, minutes=30)]
        )

    found = await Admin(store, actor="ann").verify_audit()

    assert (found.rows, found.removed, found.fault) == (4, 2, None)


async def test_more_than_was_said_to_be_removed_is_a_fault(store, fresh_database, rows):
    async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection:
        await connection.execute(
            "SELECT rota.remove_audit(%s, 'ann', 'policy')", [NOON + timedelta(hours=2, minutes=30)]
        )
    await behind_the_triggers(fresh_database, f"DELETE FROM rota.audit WHERE id = {rows[3]}")

    assert f"row {rows[3]} " in await fault(store)


@pytest.mark.parametrize("change", ["UPDATE rota.audit_seals SET place = 9", "DELETE FROM rota.audit_seals"])
async def test_seals_are_append_only_too(store, fresh_database, rows, change):
    async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
            await connection.execute(change)

    assert await fault(store) == "none"


async def test_two_who_act_at_once_do_not_wait_for_each_other_until_they_commit(store, fresh_database, rows):
    """Somebody who holds a job while another holds the chain would wait for ever."""
    insert = "INSERT INTO rota.audit (at, actor, action) VALUES (now(), 'x', 'looked')"
    connect = psycopg.AsyncConnection.connect
    async with await connect(fresh_database) as one, await connect(fresh_database) as two:
        await two.execute("SET lock_timeout = '5s'")
        await one.execute(insert)
        waited = False
        try:
            await two.execute(insert)  # before the other has ended
            await two.commit()
        except psycopg.errors.LockNotAvailable:
            waited = True
        await one.commit()

    assert not waited
    assert await fault(store) == "none"


async def test_who_looks_at_the_audit_as_it_was_loses_a_race_and_may_try_again(store, fresh_database, rows):
    """As every transaction does where the database is set to repeatable read."""
    note = (
        "INSERT INTO rota.audit (at, actor, action, reason) VALUES (now(), 'fay', 'looked', 'reason of fay')"
    )
    async with await psycopg.AsyncConnection.connect(fresh_database) as late:
        await late.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        await late.execute("SELECT count(*) FROM rota.audit")
        await store.note(Audit("eve", "looked", None, "again", about="her"))
        await late.execute(note)
        with pytest.raises(psycopg.errors.SerializationFailure) as lost:
            await late.commit()
        await late.rollback()
        await late.execute(note)
        await late.commit()

    assert repeatable(lost.value)
    assert await fault(store) == "none"
    assert (await Admin(store, actor="ann").verify_audit()).rows == len(rows) + 2
