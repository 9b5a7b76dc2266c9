"""The scheduler chore: ticks of this code's schedules become jobs when their time has come, once, whatever happens."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from worker_stage import QUICK, Stage, until

from build import NOON, Clock, claim, completed, failed
from rota import Retry, Rota, current_job, every
from rota._core.actions import Audit
from rota._core.job import State
from rota._core.schedule import Edits, Fate, ScheduleChange
from rota.config import Settings
from rota.stores.contract import JobFilter, Store
from rota.worker.chores.scheduler import LOOK_EVERY, Scheduler
from rota.worker.opening import Opening

BY_ADA = Audit("ada", "edit", None, about="schedule:poll")


@pytest.fixture
def app(store: Store) -> Rota:
    return Rota(store=store, settings=Settings.load(url="memory://", **QUICK))


async def a_scheduler(app: Rota) -> Scheduler:
    """A scheduler as a worker that has just started has it."""
    await Opening(app).step()
    return Scheduler(app.store, None, tuple(app.schedules))


async def ticks(store: Store, name: str = "poll") -> list[datetime]:
    return [seen.tick for seen in reversed(await store.ticks(name, limit=1000)) if seen.fate is Fate.ENQUEUED]


def hours(*numbers: int) -> list[datetime]:
    return [NOON + timedelta(hours=number) for number in numbers]


async def finish(store: Store) -> None:
    await store.settle([completed(job) for job in await claim(store)])


@pytest.mark.req("L25", "L24")
async def test_a_worker_runs_what_its_schedules_make(stage: Stage):
    seen = []

    @stage.app.schedule(every("1s"), overlap="allow")
    async def poll() -> None:
        seen.append((current_job().schedule, current_job().tick))

    await stage.work()
    await until(lambda: len(seen) >= 2, within=8.0)

    (first, tick), (_, later) = seen[:2]
    assert first == "poll"
    assert tick is not None
    assert later == tick + timedelta(seconds=1)


async def test_a_worker_makes_its_schedules_known_and_says_so_while_it_lives(stage: Stage):
    stage.app.schedule("@yearly", tz="Asia/Tokyo")(stage.app.task(name="yearly")(lambda: None))

    await stage.work()
    [record] = (await stage.store.roster()).schedules

    assert (record.name, record.spec.timing, record.spec.tz) == ("yearly", "@yearly", "Asia/Tokyo")


async def test_no_tick_comes_early_and_each_comes_once(app: Rota, store: Store, clock: Clock):
    app.schedule(every("1h"), overlap="allow")(app.task(name="poll")(lambda: None))
    scheduler = await a_scheduler(app)
    pauses = [await scheduler.look()]
    for minutes in (59.9, 0.1, 0, 30, 30):
        clock.advance(minutes * 60)
        pauses.append(await scheduler.look())

    assert await ticks(store) == hours(1, 2)
    assert pauses[:3] == [LOOK_EVERY, LOOK_EVERY, LOOK_EVERY]
    clock.advance(3599)
    assert await scheduler.look() == 1.0, "it wakes at the tick, not after its usual pause"


@pytest.mark.scenario(19)
async def test_any_number_of_schedulers_make_one_job_a_tick(app: Rota, store: Store, clock: Clock):
    app.schedule(every("1h"), overlap="allow")(app.task(name="poll")(lambda: None))
    schedulers = [await a_scheduler(app) for _ in range(4)]
    for _ in range(6):
        clock.advance(3600)
        await asyncio.gather(*(scheduler.look() for scheduler in schedulers))

    assert await ticks(store) == hours(1, 2, 3, 4, 5, 6)
    assert len(await store.find(JobFilter(task="poll"))) == 6


@pytest.mark.scenario(19)
@pytest.mark.parametrize(
    ("misfire", "found"),
    [("skip", [6]), ("last", [5, 6]), ("all", [3, 4, 5, 6])],
    ids=["skip", "last", "all"],
)
async def test_after_an_outage_the_policy_decides_once(
    app: Rota, store: Store, clock: Clock, caplog, misfire, found
):
    app.schedule(every("1h"), overlap="allow", misfire=misfire, cap=3)(app.task(name="poll")(lambda: None))
    await a_scheduler(app)
    clock.advance(5.5 * 3600)
    again = await a_scheduler(app)
    await again.look()
    await again.look()
    clock.advance(1800)
    await again.look()

    assert await ticks(store) == hours(*found)
    assert (
        f"ticks since {NOON.isoformat()} were missed; misfire={misfire} runs {len(found) - 1} now"
        in caplog.text
    )


@pytest.mark.req("V36")
async def test_a_periodic_job_is_retried_once_and_then_waits_for_its_next_time(
    app: Rota, store: Store, clock: Clock
):
    app.schedule(every("1h"))(app.task(name="poll", retry=Retry(attempts=2, base=1.0))(lambda: None))
    scheduler = await a_scheduler(app)
    clock.advance(3600)
    await scheduler.look()
    for _ in range(2):
        [job] = await claim(store)
        await store.settle([failed(job, retry=Retry(attempts=2), now=clock.now)])
        clock.advance(600)
    [dead] = await store.find(JobFilter(task="poll"))
    await scheduler.look()
    assert await claim(store) == []
    clock.advance(2400)
    await scheduler.look()

    assert (dead.state, dead.attempt) == (State.DEAD, 2)
    assert await ticks(store) == hours(1, 2)
    assert [job.attempt for job in await claim(store)] == [1]


async def test_while_the_last_one_is_unfinished_nothing_piles_up(
    app: Rota, store: Store, clock: Clock, caplog
):
    app.schedule(every("1h"))(app.task(name="poll")(lambda: None))
    scheduler = await a_scheduler(app)
    for _ in range(5):
        clock.advance(3600)
        await scheduler.look()
    assert await ticks(store) == hours(1)
    assert "is left out, because the job of the tick before is unfinished" in caplog.text
    await finish(store)
    clock.advance(3600)
    await scheduler.look()

    assert await ticks(store) == hours(1, 6)


@pytest.mark.req("V34")
async def test_a_pause_an_edit_and_a_window_are_heeded_at_the_next_look(
    app: Rota, store: Store, clock: Clock
):
    app.schedule(every("1h"), overlap="allow")(app.task(name="poll")(lambda: None))
    scheduler = await a_scheduler(app)

    async def change(**said) -> None:
        [record] = (await store.roster()).schedules
        asked = {"edits": record.edits, "paused": False} | said
        assert await store.change_schedule(ScheduleChange("poll", record.version, **asked), BY_ADA)

    await change(paused=True)
    clock.advance(2 * 3600)
    await scheduler.look()
    assert await ticks(store) == []
    await change(restart=True)
    clock.advance(3600)
    await scheduler.look()
    assert await ticks(store) == hours(3), "what passed during the pause is not made good"
    window = f"{NOON + timedelta(hours=3.5):%Y-%m-%dT%H:%M} for 2h"
    await change(edits=Edits(windows=(window,)))
    clock.advance(3600)
    await scheduler.look()
    assert await ticks(store) == hours(3)
    clock.advance(1.5 * 3600)
    await scheduler.look()
    assert await ticks(store) == hours(3, 5), "the last of the window's ticks ran at its end"


@pytest.mark.req("V34")
async def test_windows_and_switching_off_are_settings_of_the_deployment(
    store: Store, clock: Clock, monkeypatch
):
    monkeypatch.setenv("ROTA_MAINTENANCE", "0 1 * * SUN for 2h; 0 5 1 * * for 30m")
    app = Rota(store=store, settings=Settings.load(url="memory://"))
    app.schedule(every("1h"))(app.task(name="poll")(lambda: None))
    await a_scheduler(app)
    [record] = (await store.roster()).schedules
    monkeypatch.setenv("ROTA_SCHEDULES", "off")
    off = Rota(store=store, settings=Settings.load(url="memory://"))
    off.schedule(every("1h"), name="other")(off.task(name="other")(lambda: None))
    await Opening(off).step()

    assert record.effective.windows == ("0 1 * * SUN for 2h", "0 5 1 * * for 30m")
    assert [seen.name for seen in (await store.roster()).schedules] == ["poll"]


async def test_a_schedule_that_vanished_from_the_code_ticks_as_long_as_old_workers_live(
    app: Rota, store: Store, clock: Clock
):
    app.schedule(every("1h"), overlap="allow")(app.task(name="poll")(lambda: None))
    old = await a_scheduler(app)
    new_code = Rota(store=store, settings=app.settings)
    new_code.schedule(every("1h"), name="other", overlap="allow")(new_code.task(name="other")(lambda: None))
    new = await a_scheduler(new_code)
    clock.advance(3600)
    await new.look()
    assert await ticks(store) == []
    await old.look()
    for _ in range(5):  # the last old worker has ended
        clock.advance(60)
        await new.look()
    roster = await store.roster()

    assert await ticks(store) == hours(1)
    assert {seen.name: seen.status(roster.now) for seen in roster.schedules} == {
        "other": "active",
        "poll": "absent",
    }
    clock.advance(2 * 3600)
    await new.look()
    assert await ticks(store) == hours(1), "nobody whose code has it is there to tick it"


async def test_a_worker_whose_schedule_was_deleted_says_so_once(
    app: Rota, store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
):
    app.schedule(every("1h"))(app.task(name="poll")(lambda: None))
    scheduler = await a_scheduler(app)
    clock.advance(3600)  # as long as that it did not reach the store
    assert await store.delete_schedule("poll", 1, BY_ADA)
    for _ in range(2):
        await scheduler.look()

    [said] = [record.message for record in caplog.records if "deleted" in record.message]
    assert said.startswith("schedule poll was deleted from the store, so it does not tick.")
    assert "restart this worker" in said


async def test_old_workers_tick_by_what_the_newest_code_says(app: Rota, store: Store, clock: Clock):
    app.schedule(every("1h"), overlap="allow")(app.task(name="poll")(lambda: None))
    old = await a_scheduler(app)
    newer = Rota(store=store, settings=app.settings)
    newer.schedule(every("2h"), overlap="allow")(newer.task(name="poll", queue="fast")(lambda: None))
    await a_scheduler(newer)
    for _ in range(4):
        clock.advance(3600)
        await old.look()
    jobs = await store.find(JobFilter(task="poll"))

    assert [tick.hour % 2 for tick in await ticks(store)] == [0, 0]
    assert {job.queue for job in jobs} == {"fast"}


async def test_one_bad_schedule_does_not_keep_the_others_from_ticking(
    app: Rota, store: Store, clock: Clock, caplog
):
    app.schedule(every("1h"), name="a-bad")(app.task(name="bad")(lambda: None))
    app.schedule(every("1h"), name="poll")(app.task(name="poll")(lambda: None))
    scheduler = await a_scheduler(app)
    broken = ScheduleChange("a-bad", 1, Edits(tz="Moon/Base"), paused=False)  # no such zone on this machine
    assert await store.change_schedule(broken, BY_ADA)
    clock.advance(3600)
    await scheduler.look()

    assert await ticks(store) == hours(1)
    assert "there is no time zone 'Moon/Base'" in caplog.text


@pytest.mark.parametrize("fault", ["roster is refused", "the answer to fire is lost"])
async def test_a_store_that_is_away_is_waited_for_and_no_tick_is_lost_or_doubled(faulty: Stage, fault: str):
    verb = "roster" if "roster" in fault else "fire"
    (faulty.store.refused if verb == "roster" else faulty.store.deaf_to).add(verb)
    ran = []

    @faulty.app.schedule(every("1s"), misfire="all")
    async def poll() -> None:
        ran.append(current_job().tick)

    await faulty.work()
    [record] = faulty.store._book.plans.records.values()
    begun = record.published_at
    await until(lambda: faulty.store.calls.count(verb) >= (4 if verb == "roster" else 2))
    faulty.store.refused.clear()
    faulty.store.deaf_to.clear()
    await until(lambda: len(ran) >= 2)

    ran.sort()
    assert ran[0] - begun <= timedelta(seconds=1)
    assert {later - tick for tick, later in pairwise(ran)} == {timedelta(seconds=1)}
    assert ran[-1] <= datetime.now(UTC)
