"""Changes of settings whose answer is lost on its way: the repeat finds them done, and says so."""

from __future__ import annotations

import pytest

from rota._core.actions import Audit
from rota._core.retention import Policy
from rota._core.token import Role, Token, digest_of


@pytest.fixture
def lossy(store, monkeypatch):
    """Every answer is lost once, and what was asked is asked again."""

    def begin() -> None:
        connections = store._desks().connections
        run = connections.run

        async def lost_and_repeated(call, **_):
            await run(call)
            return await run(lambda connection, _: call(connection, True))

        monkeypatch.setattr(connections, "run", lost_and_repeated)

    return begin


async def test_a_token_is_revoked_once_and_quietly(store, lossy):
    token = Token("abcdefgh2345", "grafana", Role.VIEWER, digest_of("a text"), created_by="ann")
    await store.create_token(token, Audit("ann", "token_created", None, about=token.about))
    lossy()
    revoked = await store.revoke_token(
        token.id, "ann", Audit("ann", "token_revoked", None, about=token.about)
    )

    assert (revoked.id, revoked.revoked_by) == (token.id, "ann")
    assert [row.action for row in await store.audit(about=token.about)] == ["token_revoked", "token_created"]
    again = Audit("bob", "token_revoked", None, about=token.about)
    assert await store.revoke_token(token.id, "bob", again) is None, "somebody else did"


async def test_a_retention_policy_is_removed_once_and_quietly(store, lossy):
    policy = Policy(86_400.0, task="mail", set_by="ann")
    await store.set_policy(policy, Audit("ann", "retention_set", None, about="retention:mail"))
    lossy()

    assert await store.remove_policy(policy, Audit("ann", "retention_removed", None, about="retention:mail"))
    rows = await store.audit(about="retention:mail")
    assert [row.action for row in rows] == ["retention_removed", "retention_set"]
