"""What the pages of one tenant read: they are asked each second, and payloads may be large."""

from __future__ import annotations

import pytest

from build import a_job
from page_kit import paged, words
from rota.stores.memory import MemoryStore


@pytest.mark.parametrize("path", ["/", "/queues", "/queues/post"])
async def test_no_page_of_a_tenant_reads_large_payloads_to_list_or_count_jobs(path, monkeypatch):
    store = MemoryStore()
    await store.enqueue([a_job("mail", {"text": "x" * 10_000}, queue="post", tenant="red") for _ in range(3)])
    find, asked = store.find, []

    async def found(wanted):
        asked.append(wanted)
        return await find(wanted)

    monkeypatch.setattr(store, "find", found)
    async with paged(store) as site:
        page = await (await site.visitor("viewer", "red")).get(path)

    assert page.status_code == 200, words(page)
    assert [wanted for wanted in asked if wanted.limit > 1 and not wanted.brief] == []
    assert asked
