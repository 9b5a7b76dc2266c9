"""A purge that somebody began on the system page: it ends with his token."""

from __future__ import annotations

import asyncio

import pytest

from build import Clock
from page_kit import paged
from rota._core.actions import AuditFilter
from rota.admin import Admin
from rota.stores.memory import MemoryStore
from rota.web import driving


@pytest.mark.parametrize("revoked", [True, False])
async def test_a_purge_ends_with_the_token_that_began_it(clock: Clock, monkeypatch, revoked):
    monkeypatch.setattr(driving, "TRUST", 0.01)
    store, admin = MemoryStore(clock=clock), None
    prune, go_on = store.prune, asyncio.Event()

    async def slow(*asked, **options):
        await go_on.wait()
        return await prune(*asked, **options)

    monkeypatch.setattr(store, "prune", slow)
    async with paged(store) as site:
        token, admin = await site.token("manager"), Admin(store, actor="ann")
        client = site.anonymous(authorization=f"Bearer {token}", accept="text/html")
        assert (await client.post("/system/prune", data={"expected": "0"})).status_code == 303
        if revoked:
            await admin.revoke_token(token, reason="laptop lost")
        else:
            asyncio.get_running_loop().call_later(0.1, go_on.set)
        async with asyncio.timeout(5):
            await site.asgi.state.drivers.idle()

        told = [row.action for row in await admin.trail(AuditFilter()) if row.action.startswith("prune")]
        assert told == ["prune_stopped" if revoked else "pruned", "prune"]
