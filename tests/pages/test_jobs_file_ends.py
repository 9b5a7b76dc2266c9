"""The file of jobs: it ends with the token that asked for it, and tells times in one way."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator

import pytest

from build import NOON, Clock, a_job
from page_kit import PageSite, paged
from rota.admin import Admin
from rota.stores.memory import MemoryStore
from rota.web.pages import jobs_export


@pytest.fixture
async def site(clock: Clock) -> AsyncIterator[PageSite]:
    async with paged(MemoryStore(clock=clock)) as site:
        yield site


async def test_a_file_is_broken_off_when_its_token_is_revoked(site, monkeypatch):
    """Whoever revokes a token means all that goes on with it, also what was asked for before."""
    monkeypatch.setattr(jobs_export, "PAGE", 10)
    await site.store.enqueue([a_job() for _ in range(25)])
    token, find = await site.token("viewer"), site.store.find

    async def found(wanted):
        page = await find(wanted)
        if wanted.before is not None:
            await Admin(site.store, actor="ann").revoke_token(token)
        return page

    monkeypatch.setattr(site.store, "find", found)
    client = site.anonymous(authorization=f"Bearer {token}", accept="text/html")
    file = json.loads((await client.get("/jobs/export.json")).text)

    assert len(file["jobs"]) == 20
    assert file["note"].startswith("broken off: nothing says any more that you may see the rest.")


async def test_both_files_tell_times_as_iso_8601_has_them(site):
    await site.store.enqueue([a_job()])
    client = await site.visitor("viewer")

    [row] = csv.DictReader(io.StringIO((await client.get("/jobs/export.csv")).text))
    [job] = json.loads((await client.get("/jobs/export.json")).text)["jobs"]

    assert job["created_at"] == row["created_at"] == NOON.isoformat()
