"""A caller's searches take turns, so that others have theirs."""

from __future__ import annotations

import asyncio

import pytest

from rota.stores.memory import MemoryStore
from rota.web import searching
from web_kit import served

JOBS = "/api/v1/jobs"
SEARCHES = [
    ("GET", JOBS, {"params": {"filter": "args.x:y"}}),
    ("POST", f"{JOBS}/actions", {"json": {"verb": "hold", "filter": ""}}),
    ("POST", f"{JOBS}/purge", {"json": {"filter": ""}}),
    ("GET", "/api/jobs/admin/queue/", {}),
    ("GET", "/api/jobs/admin/queue/statistics/", {}),
    ("GET", "/api/jobs/admin/dlq/statistics/", {}),
]


class Slow(MemoryStore):
    """Looks at jobs until it is told that it has found them."""

    def __init__(self) -> None:
        super().__init__()
        self.looking, self.found = 0, asyncio.Event()

    async def find(self, wanted):
        await self._look()
        return await super().find(wanted)

    async def count_found(self, *args, **more):
        await self._look()
        return await super().count_found(*args, **more)

    async def tally(self, *args, **more):
        await self._look()
        return await super().tally(*args, **more)

    async def _look(self) -> None:
        self.looking += 1
        await self.found.wait()


async def looks(store: Slow, searches: int) -> None:
    """So many searches are at work, and no more come."""
    async with asyncio.timeout(10):
        while store.looking < searches:
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    assert store.looking == searches


@pytest.mark.parametrize(("method", "path", "sent"), SEARCHES, ids=lambda part: str(part))
async def test_a_third_search_of_one_caller_waits_and_others_have_their_own_turns(method, path, sent):
    store = Slow()
    async with served(store) as site:
        first, second = await site.client(), await site.client()
        asked = [asyncio.create_task(first.request(method, path, **sent)) for _ in range(5)]
        await looks(store, 2)
        asked.append(asyncio.create_task(second.request(method, path, **sent)))
        await looks(store, 3)
        assert (await first.get("/api/v1/session")).status_code == 200

        store.found.set()
        assert [answer.status_code for answer in await asyncio.gather(*asked)] == [200] * 6


async def test_who_waited_too_long_for_his_own_searches_is_told_so(monkeypatch):
    monkeypatch.setattr(searching, "WAITING_SECONDS", 0.1)
    store = Slow()
    async with served(store) as site:
        client = await site.client("viewer")
        asked = [asyncio.create_task(client.get(JOBS)) for _ in range(2)]
        await looks(store, 2)
        refused = await client.get(JOBS)
        store.found.set()
        await asyncio.gather(*asked)

        assert (refused.status_code, refused.json()["type"]) == (429, "urn:rota:searches-busy")
        assert "retry-after" in refused.headers
        assert (await client.get(JOBS)).status_code == 200
