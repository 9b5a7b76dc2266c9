"""The pages of workers: who is at work, and what the slots of one did lately."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from build import Clock, a_job, claim, completed, failed
from page_kit import PageSite, paged, words
from rota._core.failure import ErrorClass
from rota._core.happening import Stint
from rota._core.numbers import LaneTotal, Minute
from rota.stores.contract import SessionStart
from rota.stores.memory import MemoryStore
from rota.web.pages import workers
from rota.web.pages.lanes import drawn, packed

NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
SINCE = NOON - timedelta(minutes=10)


@pytest.fixture
async def site(clock: Clock) -> AsyncIterator[PageSite]:
    async with paged(MemoryStore(clock=clock)) as site:
        yield site


async def a_worker(site: PageSite, host: str = "web-1", pid: int = 4711, lease: float = 30.0, **more) -> UUID:
    given = {
        "lanes": {"fast": 2, "slow": 6},
        "queues": {"fast": ("post",), "slow": ("reports",)},
        "code_version": "v7",
    }
    start = SessionStart(uuid4(), host, pid, tasks=("email", "mail"), **(given | more))
    await site.store.open_session(start, lease=lease)
    return start.id


def stint(begin: float, end: float | None, outcome: str = "completed", number: int = 1) -> Stint:
    """From and to so many seconds after the time began."""
    ended = None if end is None else SINCE + timedelta(seconds=end)
    return Stint(UUID(int=number), "mail", "post", None, 1, SINCE + timedelta(seconds=begin), ended, outcome)


# The picture


def test_stints_that_overlap_lie_in_different_lanes_and_others_share_one():
    first, second, third = stint(0, 60, number=1), stint(30, 90, number=2), stint(60, 120, number=3)

    assert packed([third, second, first], SINCE, NOON) == [[first, third], [second]]


def test_what_ended_before_or_begins_after_is_not_drawn():
    assert packed([stint(-90, -30), stint(700, 800)], SINCE, NOON) == []


def test_bars_lie_where_they_were_in_time_and_have_the_colour_of_their_end():
    picture = drawn(
        [stint(60, 120), stint(300, 360, "dead", 2), stint(540, None, "running", 3)], SINCE, NOON, slots=2
    )

    bars = [block.bar for block in picture.rows[0]]
    assert [(bar.x, bar.width, bar.tone) for bar in bars] == [
        (100, 100, "ok"),
        (500, 100, "bad"),
        (900, 100, "run"),
    ]
    assert len(picture.tracks) == 2
    assert picture.busy == pytest.approx(180 / 1200)


def test_what_began_before_the_picture_is_cut_at_its_edge():
    [[block]] = drawn([stint(-300, 300)], SINCE, NOON, slots=1).rows

    assert (block.bar.x, block.bar.width) == (0, 500)


def test_many_short_ones_side_by_side_are_one_bar_that_says_how_many():
    short = [stint(number * 0.5, number * 0.5 + 0.4, number=number) for number in range(200)]

    [[block]] = drawn(short, SINCE, NOON, slots=1).rows

    assert block.stints == 200
    assert block.bar.title.startswith("200 short jobs")


def test_more_lanes_than_fit_are_counted():
    picture = drawn([stint(0, 600, number=number) for number in range(30)], SINCE, NOON, slots=30, most=24)

    assert (len(picture.rows), picture.left_out) == (24, 6)


# The pages


async def test_without_a_worker_the_page_teaches_how_to_start_one(site):
    page = await (await site.visitor("viewer")).get("/workers")

    assert "No worker is running" in words(page)
    assert "rota worker" in words(page)


async def test_a_worker_is_listed_with_its_slots_queues_code_and_lease(site):
    worker = await a_worker(site)
    await site.store.enqueue([a_job(), a_job()])
    await claim(site.store, worker)

    page = await (await site.visitor("viewer")).get("/workers")

    assert "web-1 process 4711 alive" in words(page)
    assert "2 of 8 slots in use" in words(page)
    assert "fast 2 · slow 6" in words(page)
    assert "post reports" in words(page)
    assert "one version everywhere" in words(page)


async def test_those_that_ended_or_fell_silent_stand_below(site, clock):
    await a_worker(site, "quiet-1")
    clock.advance(60)
    ended = await a_worker(site, "done-1")
    await site.store.end_session(ended)
    await a_worker(site, "here-1")

    said = words(await (await site.visitor("viewer")).get("/workers"))

    assert (
        said.index("here-1") < said.index("Ended lately") < min(said.index("done-1"), said.index("quiet-1"))
    )
    assert "stopped beating" in said


async def test_how_full_lanes_were_is_told(site, clock):
    worker = await a_worker(site)
    lanes = (LaneTotal("fast", 100, 95), LaneTotal("slow", 100, 10))
    await site.store.note_minutes(worker, [Minute(clock.now.replace(second=0), lanes=lanes)])

    page = await (await site.visitor("viewer")).get("/workers")

    assert "fast 95 % busy 95 %" in words(page)


async def test_a_worker_shows_what_it_runs_and_what_its_slots_did(site, clock):
    worker = await a_worker(site, lease=600.0)
    jobs = [a_job(queue="post") for _ in range(3)]
    await site.store.enqueue(jobs)
    well, dies, _ = await claim(site.store, worker)
    clock.advance(90)
    await site.store.settle([completed(well), failed(dies, ErrorClass.NON_RETRYABLE, now=clock.now)])
    clock.advance(30)

    page = await (await site.visitor("viewer")).get(f"/workers/{worker}")

    assert page.text.count("<title>email: completed, 1m 30s") == 1
    assert page.text.count("<title>email: running, 2m") == 1
    assert "1 of 8 at this moment" in words(page)
    assert [page.text.count(f'class="{tone}" x=') for tone in ("ok", "bad", "run")] == [1, 1, 1]


async def test_memory_is_told_on_both_pages_and_unknown_is_not_zero(site):
    known = await a_worker(site, memory=81_200_000)
    unknown = await a_worker(site, "old-1")
    ann = await site.visitor("viewer")

    listed = words(await ann.get("/workers"))
    assert "v7 81 MB" in listed
    assert "v7 unknown" in listed
    assert "Memory 81 MB of its own process" in words(await ann.get(f"/workers/{known}"))
    assert "Memory unknown of its own process" in words(await ann.get(f"/workers/{unknown}"))


async def test_an_operator_drains_a_worker_and_every_page_says_who_asked(site, clock):
    worker = await a_worker(site, hears=True)
    otto, ann = await site.visitor("operator"), await site.visitor("viewer")
    clock.advance(1)

    page = await otto.post(f"/workers/{worker}/drain", data={"reason": "deploy of v9"})
    clock.advance(10)

    assert page.status_code == 303
    [by] = {row.actor for row in await site.store.audit(about=f"worker:{worker}")}
    assert f"draining asked by {by} 10s ago" in words(await ann.get("/workers"))
    said = words(await ann.get(f"/workers/{worker}"))
    assert f"Draining, asked by {by} 10s ago . deploy of v9" in said
    assert "Nobody takes its place." in said
    forms = (await otto.get(f"/workers/{worker}")).text
    assert (f"/workers/{worker}/drain" in forms, f"/workers/{worker}/stop" in forms) == (False, True)


async def test_who_may_not_drain_is_not_offered_it(site):
    worker = await a_worker(site, hears=True)

    for visitor in (await site.visitor("viewer"), await site.visitor("operator", "red")):
        assert f"/workers/{worker}/drain" not in (await visitor.get(f"/workers/{worker}")).text


async def test_a_worker_of_an_older_version_says_how_to_end_it_instead(site):
    worker = await a_worker(site)
    otto = await site.visitor("operator")

    page = await otto.get(f"/workers/{worker}")
    refused = await otto.post(f"/workers/{worker}/drain")

    assert "It does not answer orders" in words(page)
    assert "kill -TERM 4711" in words(page)
    assert (refused.status_code, "does not answer orders" in words(refused)) == (409, True)


async def test_a_worker_that_nobody_knows_is_said_on_a_page(site):
    page = await (await site.visitor("viewer")).get(f"/workers/{uuid4()}")

    assert (page.status_code, "No worker has this id" in words(page)) == (404, True)


async def test_people_of_a_tenant_see_the_workers_that_serve_them_and_only_their_own_jobs(site):
    shared, blue = await a_worker(site), await a_worker(site, "blue-1", tenant="blue")
    await site.store.enqueue([a_job("email", tenant="blue"), a_job("mail", tenant="red")])
    await claim(site.store, shared)
    red = await site.visitor("viewer", "red")

    listed, shown = await red.get("/workers"), await red.get(f"/workers/{shared}")

    assert "web-1" in words(listed)
    assert "blue-1" not in words(listed)
    assert "8 slots" in words(listed)
    assert "<title>mail: running" in shown.text
    assert "<title>email: running" not in shown.text
    assert "Slots in use" not in words(shown)
    assert "Busy with yours" in words(shown)
    assert (await red.get(f"/workers/{blue}")).status_code == 404


async def test_names_of_hosts_stay_text(site):
    worker = await a_worker(site, "<b>web</b>")

    for path in ("/workers", f"/workers/{worker}"):
        assert "<b>web</b>" not in (await (await site.visitor("viewer")).get(path)).text


@pytest.mark.parametrize("ends", [True, False])
async def test_a_worker_that_is_gone_shows_the_last_minutes_of_its_life(site, clock, ends):
    worker = await a_worker(site, lease=120.0)
    await site.store.enqueue([a_job(queue="post")])
    [job] = await claim(site.store, worker)
    clock.advance(90)
    await site.store.settle([completed(job)])
    if ends:
        await site.store.end_session(worker)
    clock.advance(20 * 60)

    page = await (await site.visitor("viewer")).get(f"/workers/{worker}")

    assert page.text.count("<title>email: completed, 1m 30s") == 1
    assert "Every slot was idle" not in words(page)
    assert "Its last ten minutes" in words(page)


async def test_of_more_running_jobs_than_are_counted_it_is_not_said_how_many_each_has(site, monkeypatch):
    monkeypatch.setattr(workers, "RUNNING", 2)
    worker = await a_worker(site)
    await site.store.enqueue([a_job() for _ in range(3)])
    await claim(site.store, worker)

    said = words(await (await site.visitor("viewer")).get("/workers"))

    assert "In use 2+" in said
    assert "2 of 8" not in said
    assert "8 slots" in said


async def test_a_worker_that_is_gone_and_lived_shortly_is_drawn_from_its_start(site, clock):
    """Busy is a share of the time that it lived, and the axis says what is drawn."""
    worker = await a_worker(site, lease=1e6, lanes={"slow": 1})
    began = clock.now
    await site.store.enqueue([a_job()])
    [job] = await claim(site.store, worker)
    clock.advance(60)
    await site.store.settle([completed(job)])
    clock.advance(60)
    await site.store.end_session(worker)
    clock.advance(30)

    page = await (await site.visitor("viewer")).get(f"/workers/{worker}")

    ended = began + timedelta(minutes=2)
    assert f"{began:%H:%M} {ended:%H:%M} UTC" in words(page)
    assert "Busy 50 %" in words(page)
