"""Looking at a standby: pages and commands show what it has, and change nothing until it is promoted."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from chaos.cluster import COPIED, Cluster, Standby, caught_up
from rota.errors import StoreUnavailable
from rota.stores.postgres import PostgresStore
from rota.web import changes
from web_kit import Site, served

PAGES = (
    *("/", "/jobs", "/failures", "/queues", "/queues/post", "/tasks", "/tasks/mail"),
    *("/workers", "/schedules", "/activity", "/system"),
)
BADGE = "Nothing can be changed here: this database is a read-only replica; ask the primary."


@pytest.fixture
def pair() -> Iterator[tuple[Cluster, Standby]]:
    """A primary with our schema, and a standby that follows it."""
    primary = Cluster(settings=COPIED)
    standby = None
    try:
        primary.start_migrated()
        standby = Standby(primary)
        standby.start()
        yield primary, standby
    finally:
        primary.destroy()
        if standby is not None:
            standby.destroy()


async def a_job_and_a_token(url: str) -> tuple[str, str]:
    store = PostgresStore(url)
    async with served(store) as site:
        job = await site.app.tasks["mail"].using(delay=3600).enqueue("ann")
        token = await site.token("manager")
        await store.publish([task.spec() for task in site.app.tasks.values()])
    await store.close()
    return str(job.id), token


async def shown(site: Site, path: str, token: str) -> str:
    """A page, to somebody who comes in for it."""
    browser = site.anonymous(accept="text/html", sec_fetch_site="same-origin")
    assert (await browser.post("/enter", data={"token": token})).status_code == 303
    answer = await browser.get(path)
    assert answer.status_code == 200, (path, answer.text)
    return answer.text


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_pages_of_a_standby_show_everything_and_offer_changes_once_it_is_promoted(pair, monkeypatch):
    monkeypatch.setattr(changes, "LASTS", 0.0)
    monkeypatch.setattr(changes, "PATIENCE", 60.0)
    primary, standby = pair

    async def story() -> None:
        job_id, token = await a_job_and_a_token(primary.url)
        await asyncio.to_thread(caught_up, primary)
        store = PostgresStore(standby.url)
        async with served(store, pages=True) as site:
            program = site.anonymous(authorization=f"Bearer {token}")
            for path in (*PAGES, f"/jobs/{job_id}"):
                page = await shown(site, path, token)
                assert BADGE in page, path
                own = 1 if path == "/jobs" else 0  # a view is kept in the browser
                assert page.count('method="post"') == 2 + own, path  # the theme and the way out
            refused = await program.post(f"/api/v1/jobs/{job_id}/cancel", json={})
            assert (refused.status_code, refused.json()["type"]) == (403, "urn:rota:read-only")

            await asyncio.to_thread(standby.promote)

            page = await shown(site, f"/jobs/{job_id}", token)
            assert BADGE not in page
            assert page.count('method="post"') > 2
            cancelled = await program.post(f"/api/v1/jobs/{job_id}/cancel", json={})
            assert cancelled.status_code == 200, cancelled.text
        await store.close()

    asyncio.run(story())


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_commands_read_a_standby_and_say_in_one_line_why_they_cannot_change_it(pair):
    primary, standby = pair
    job_id, _ = asyncio.run(a_job_and_a_token(primary.url))
    caught_up(primary)

    for words in (["jobs", "list"], ["jobs", "show", job_id], ["stats"], ["queues"], ["top", "--once"]):
        done = rota(*words, "--url", standby.url)
        assert done.returncode == 0, (words, done.stderr)
    for words in (["jobs", "cancel", job_id], ["jobs", "hold", job_id], ["enqueue", "mail", "to=ann"]):
        done = rota(*words, "--url", standby.url)
        assert done.returncode == 3, (words, done.stdout, done.stderr)
        [line] = done.stderr.splitlines()
        assert line.endswith("is read-only (a standby?). Point the address at the primary."), line


def rota(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rota.cli", *words], check=False, capture_output=True, text=True, timeout=120
    )


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_a_standby_says_what_it_is_at_once_and_takes_changes_when_it_is_promoted(pair):
    primary, standby = pair
    asyncio.run(a_job_and_a_token(primary.url))
    caught_up(primary)

    async def story() -> None:
        store = PostgresStore(standby.url)
        assert await store.refuses_changes() == "this database is a read-only replica; ask the primary"
        assert (await store.room()).read_only
        with pytest.raises(StoreUnavailable, match="is read-only"):
            await store.note_token_used("nobody")
        await asyncio.to_thread(standby.promote)

        assert await store.refuses_changes() is None
        assert not (await store.room()).read_only
        await store.close()

    asyncio.run(story())
