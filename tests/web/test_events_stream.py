"""Events for those who watch: what changed, to whom it belongs, and never more in memory than there are topics."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from build import a_job, a_session, claim, completed, new_id
from rota._core.happening import Happening, Kind
from rota.admin import Admin, picture
from rota.web import feed
from rota.web.api import events
from web_kit import streamed

EVENTS = "/api/v1/events"


@pytest.fixture(autouse=True)
def quick(monkeypatch, clock):
    # Ids are made by the real clock: to a store whose time is yet to come they are old.
    clock.now = datetime.now(UTC) - timedelta(minutes=10)
    monkeypatch.setattr(feed, "EVERY", 0.1)
    monkeypatch.setattr(feed, "DEBOUNCE", 0.02)
    monkeypatch.setattr(events, "TRUST", 0.0)


async def reader(site, topics: str, role: str = "viewer", tenant: str | None = None):
    client = await site.client(role, tenant)
    return streamed(site.asgi, EVENTS, client.headers, {"topics": topics})


async def told(stream) -> dict[str, dict[str, int]]:
    """The next event, heartbeats passed over: its topic and kinds."""
    while True:
        piece = (await stream.next() or b"").decode()
        if not piece.startswith(":"):
            data = next(line for line in piece.splitlines() if line.startswith("data: "))
            said = json.loads(data.removeprefix("data: "))
            return {said["topic"]: said["kinds"]}


async def stored(site, **fields):
    job = a_job("mail", {"to": "ann"}, **fields)
    await site.store.enqueue([job])
    return job


async def test_a_reader_hears_what_happens_to_what_he_asked_for(site, clock):
    async with await reader(site, "queue:slow") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        assert b"event: resync" in await stream.next()
        clock.advance(1)
        await stored(site)
        await stored(site, queue="slow")

        assert await told(stream) == {"queue:slow": {"enqueued": 1}}


async def test_one_job_is_followed_to_its_end(site, clock):
    job = await stored(site)
    clock.advance(1)
    async with await reader(site, f"job:{job.id}") as stream:
        await stream.next()
        clock.advance(1)
        [running] = await claim(site.store, await a_session(site.store))
        assert await told(stream) == {f"job:{job.id}": {"started": 1}}
        clock.advance(1)
        await site.store.settle([completed(running)])

        assert await told(stream) == {f"job:{job.id}": {"completed": 1}}


@pytest.mark.req("W36")
async def test_a_tenant_hears_of_its_own_jobs_only(site, clock):
    theirs = await stored(site, tenant="blue")
    clock.advance(1)
    async with await reader(site, f"jobs,queue:default,job:{theirs.id}", tenant="red") as stream:
        await stream.next()
        clock.advance(1)
        await claim(site.store, await a_session(site.store))
        await stored(site, tenant="blue")
        await stored(site, tenant="red", queue="other")

        assert await told(stream) == {"jobs": {"enqueued": 1}}


async def test_who_could_not_be_told_all_hears_that_he_missed_something(site, clock, monkeypatch):
    monkeypatch.setattr(picture, "NEWS_AT_ONCE", 2)
    mine = await stored(site, tenant="red", queue="quiet")
    clock.advance(60)
    async with await reader(site, f"job:{mine.id}", tenant="red") as stream:
        await stream.next()
        clock.advance(10)
        for _ in range(5):
            await stored(site, tenant="blue")

        while (piece := await stream.next()) == b": still here\n\n":
            pass
        assert piece == b"event: resync\ndata: {}\n\n"
        for _ in range(5):
            clock.advance(1)
            await stored(site, tenant="blue")
            await asyncio.sleep(0.05)
        assert stream._pieces.empty()  # everything is fetched then: not with every look


async def test_a_stream_ends_when_its_token_is_revoked(site, clock):
    token = await site.token("viewer")
    headers = {"authorization": f"Bearer {token}"}
    async with streamed(site.asgi, EVENTS, headers, {"topics": "jobs"}) as stream:
        await stream.next()
        await Admin(site.store, actor="ann").revoke_token(token)
        clock.advance(1)
        await stored(site)

        assert await stream.next() is None


async def test_a_reader_that_is_stuck_costs_no_more_than_his_topics(memory_site):
    desk = memory_site.asgi.state.desk
    async with await reader(memory_site, "jobs,queue:mail") as stream:
        await stream.next()
        stream.reading.clear()
        [box] = desk.feed._boxes
        now = await memory_site.store.now()
        for _ in range(10_000):
            box.put(Happening(now, Kind.COMPLETED, new_id(), "mail", "mail"))

        assert len(box._news) == 2
        assert box._news["jobs"] == {"completed": 10_000}
        stream.reading.set()
        assert sum([kinds["completed"] for kinds in [*(await told(stream)).values()]]) >= 1


async def test_nobody_looks_when_nobody_watches(memory_site):
    desk = memory_site.asgi.state.desk
    async with await reader(memory_site, "jobs") as stream:
        await stream.next()
        assert len(desk.feed) == 1
        looking = desk.feed._looking
    await asyncio.sleep(0)

    assert len(desk.feed) == 0
    assert desk.feed._looking is None
    with pytest.raises(asyncio.CancelledError):
        await looking


async def test_a_quiet_stream_is_kept_alive(memory_site, monkeypatch):
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    async with await reader(memory_site, "jobs") as stream:
        await stream.next()

        assert await stream.next() == b": still here\n\n"


async def test_a_stream_ends_by_itself_in_the_end(memory_site, monkeypatch):
    monkeypatch.setattr(events, "LIFE", 0.1)
    async with await reader(memory_site, "jobs") as stream:
        pieces = [await stream.next() for _ in range(3)]

    assert pieces[-1] is None


async def test_one_caller_has_so_many_streams(memory_site, monkeypatch):
    monkeypatch.setattr(feed, "STREAMS_EACH", 1)
    client = await memory_site.client("viewer")
    async with streamed(memory_site.asgi, EVENTS, client.headers, {"topics": "jobs"}) as stream:
        await stream.next()
        second = await client.get(EVENTS, params={"topics": "jobs"})

    assert (second.status_code, second.json()["type"]) == (429, "urn:rota:too-many-streams")


@pytest.mark.parametrize(
    "topics", ["", ",", "everything", "queue:", "job:1", ",".join(["jobs"] * 51), "jobs,nothing"]
)
async def test_a_topic_that_is_none_is_refused(memory_site, topics):
    answer = await (await memory_site.client("viewer")).get(EVENTS, params={"topics": topics})

    assert (answer.status_code, answer.json()["type"]) == (422, "urn:rota:bad-topic")
