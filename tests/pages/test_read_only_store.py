"""A store that takes no changes: pages show, offer nothing, and say why; when it takes them again, so do the pages."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import psycopg
import pytest

from rota.errors import StoreUnavailable
from rota.stores.memory import MemoryStore
from rota.stores.postgres import PostgresStore
from rota.web import changes
from web_kit import served

WORDS = "this database is set to read only (default_transaction_read_only); ask whoever set it"


class Replica(MemoryStore):
    """A memory that can be told to take no changes, and then holds whoever tries."""

    only_reads = False
    tried = 0

    async def refuses_changes(self) -> str | None:
        return "this database is a read-only replica; ask the primary" if self.only_reads else None

    async def note_token_used(self, token_id: str) -> None:
        self.tried += self.only_reads
        await super().note_token_used(token_id)


@pytest.fixture(autouse=True)
def asked_each_time(monkeypatch):
    monkeypatch.setattr(changes, "LASTS", 0.0)
    monkeypatch.setattr(changes, "PATIENCE", 60.0)


def forms(text: str) -> set[str]:
    """Where the forms of a page lead, but for those that concern the browser alone."""
    found = {piece.partition('"')[0] for piece in text.split('method="post" action="')[1:]}
    return found - {"/prefer", "/leave"}


async def test_pages_of_a_replica_offer_nothing_say_why_and_offer_it_again_when_it_is_promoted():
    store = Replica()
    async with served(store, pages=True) as site:
        job = await site.app.tasks["mail"].using(delay=3600).enqueue("ann")
        browser = await site.browser("manager")
        before = forms((await browser.get(f"/jobs/{job.id}")).text)

        store.only_reads = True
        page = (await browser.get(f"/jobs/{job.id}")).text
        store.only_reads = False
        after = (await browser.get(f"/jobs/{job.id}")).text

    assert before
    assert forms(page) == set()
    assert "read only</span> Nothing can be changed here: this database is a read-only replica; ask" in page
    assert forms(after) == before
    assert "read only</span>" not in after


async def test_the_part_of_a_page_that_updates_itself_says_it_too():
    store = Replica()
    async with served(store, pages=True) as site:
        browser = await site.browser("manager")
        store.only_reads = True
        part = await browser.get("/", headers={"hx-request": "true"})

    assert "<header" not in part.text
    assert "ask the primary" in part.text


async def test_what_is_asked_of_a_replica_all_the_same_is_refused_with_the_reason():
    store = Replica()
    async with served(store, pages=True) as site:
        job = await site.app.tasks["mail"].using(delay=3600).enqueue("ann")
        manager, viewer = await site.client("manager"), await site.client("viewer")
        browser = await site.browser("operator")
        store.only_reads = True
        refused = await manager.post(f"/api/v1/jobs/{job.id}/cancel", json={})
        page = await browser.post(f"/jobs/{job.id}/hold")
        never = await viewer.post(f"/api/v1/jobs/{job.id}/cancel", json={})
        who = await manager.get("/api/v1/session")

    assert (refused.status_code, refused.json()["type"]) == (403, "urn:rota:read-only")
    assert refused.json()["detail"] == (
        "Nothing can be changed here now: this database is a read-only replica; ask the primary."
    )
    assert page.status_code == 403
    assert "Nothing can be changed here now" in page.text
    assert never.json()["type"] == "urn:rota:role-too-low"
    assert who.json()["role"] == "viewer"


async def test_people_come_in_and_go_out_of_a_replica_without_a_write():
    store = Replica()
    async with served(store, pages=True, secret="s" * 40) as site:
        token = await site.token("manager")
        store.only_reads = True
        client = site.anonymous(accept="text/html", sec_fetch_site="same-origin")
        await client.get("/enter")
        program = site.anonymous(authorization=f"Bearer {token}")
        assert (await program.get("/api/v1/jobs")).status_code == 200
        tried = store.tried
        assert (await program.get("/api/v1/jobs")).status_code == 200
        assert (await client.post("/enter", data={"token": token})).status_code == 303
        assert (await client.get("/")).status_code == 200
        left = await client.post("/leave")
        again = await client.get("/")

    assert store.tried == tried <= 1  # the first of all may find it out by trying
    assert left.status_code == 303
    assert again.status_code == 303
    assert not [row for row in await store.audit() if row.action == "logged_out"]


async def test_a_store_that_is_away_has_not_changed_its_mind():
    class Away(Replica):
        gone = False

        async def refuses_changes(self) -> str | None:
            if self.gone:
                raise StoreUnavailable("away")
            return await super().refuses_changes()

    store = Away()
    store.only_reads = True
    async with served(store, pages=True) as site:
        browser = await site.browser("manager")
        assert "ask the primary" in (await browser.get("/")).text
        store.gone, store.only_reads = True, False

        assert "ask the primary" in (await browser.get("/")).text


async def test_nobody_waits_long_to_be_told_whether_a_store_that_hangs_takes_changes(monkeypatch):
    monkeypatch.setattr(changes, "PATIENCE", 0.01)

    class Hanging(Replica):
        async def refuses_changes(self) -> str | None:
            await asyncio.Event().wait()
            return None

    async with served(Hanging(), pages=True) as site:
        browser = await site.browser("manager")
        answers = [await browser.get(path) for path in ("/", "/jobs")]

    assert [answer.status_code for answer in answers] == [200, 200]


async def test_the_store_is_asked_once_in_a_while_however_many_look(monkeypatch):
    monkeypatch.setattr(changes, "LASTS", 3600.0)

    class Counted(MemoryStore):
        asked = 0

        async def refuses_changes(self) -> str | None:
            self.asked += 1
            return None

    store = Counted()
    async with served(store, pages=True) as site:
        for _ in range(3):
            browser = await site.browser("viewer")
            await browser.get("/")
            await browser.get("/jobs")

    assert store.asked == 1


async def test_a_dashboard_that_was_started_to_show_only_says_so_too():
    async with served(MemoryStore(), pages=True, read_only=True) as site:
        page = await (await site.browser("manager")).get("/")

    assert "Nothing can be changed here: this dashboard was started to show only." in page.text


async def test_a_database_that_is_set_to_read_only_is_noticed_at_once_and_so_is_the_contrary(direct_database):
    """What is set holds for connections made since. The pages have older ones, and know it all the same."""
    name = urlsplit(direct_database).path.strip("/")
    store = PostgresStore(direct_database)
    async with served(store, pages=True) as site:
        job = await site.app.tasks["mail"].using(delay=3600).enqueue("ann")
        token = await site.token("manager")
        browser = await site.browser("manager")
        path = f"/jobs/{job.id}"
        before = forms((await browser.get(path)).text)

        await administered(direct_database, f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        shown = (await browser.get(path)).text
        refused = await browser.post(f"{path}/hold")
        await store.close()  # from here on all connections are new ones, and can only read
        client = site.anonymous(accept="text/html", sec_fetch_site="same-origin")
        entered = await client.post("/enter", data={"token": token})
        told = (await client.get("/system")).text

        await administered(direct_database, f"ALTER DATABASE {name} RESET default_transaction_read_only")
        after = forms((await browser.get(path)).text)
        held = await browser.post(f"{path}/hold")
        state = (await job.status()).value
        await store.close()

    assert before == after != set()
    assert forms(shown) == set()
    assert WORDS in shown
    assert (refused.status_code, entered.status_code) == (403, 303)
    assert WORDS in told
    assert (held.status_code, state) == (303, "held")


async def administered(url: str, words: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(words)
