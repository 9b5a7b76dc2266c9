"""What any worker does for all: rescue, tidy, unpark."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from worker_stage import until

from build import LEASE, Clock, a_job, a_session, claim, read
from rota import Retry
from rota._core.depths import Depth
from rota._core.job import State
from rota._core.task_spec import TaskSpec
from rota.app import Rota
from rota.config import Settings
from rota.stores.contract import Retention
from rota.stores.memory import MemoryStore
from rota.worker.chores import sampler
from rota.worker.chores.janitor import Janitor
from rota.worker.chores.rescuer import Rescuer
from rota.worker.chores.unparker import Unparker
from rota.worker.desk import Desk
from rota.worker.lanes import Lane, LaneSpec


@pytest.fixture
def memory(clock: Clock) -> MemoryStore:
    return MemoryStore(clock=clock)


@pytest.fixture
def desk() -> Desk:
    return Desk([Lane(LaneSpec("general", 5, None))], {})


def a_rescuer(store, desk, tasks=None) -> Rescuer:
    return Rescuer(store, desk, tasks or {}, lease=LEASE)


@pytest.mark.scenario(3)
async def test_jobs_of_an_expired_session_go_back_on_the_list_at_once(memory, desk, clock, caplog):
    await memory.enqueue([a_job(), a_job()])
    jobs = await claim(memory)
    clock.advance(LEASE + 1)
    desk.lanes[0].dry = True
    await memory.end_expired()
    number = await a_rescuer(memory, desk).rescue()
    found = [await read(memory, job) for job in jobs]

    assert number == 2
    assert {(job.state, job.run_at, job.losses) for job in found} == {(State.PENDING, clock.now, 1)}
    assert not desk.lanes[0].dry, "the rescuer's own worker should look for them at once"
    assert "rescued 2 jobs whose worker had stopped beating" in caplog.text


async def test_a_living_session_keeps_its_jobs(memory, desk, clock):
    await memory.enqueue([a_job()])
    [job] = await claim(memory)
    clock.advance(LEASE - 1)
    await memory.end_expired()

    assert await a_rescuer(memory, desk).rescue() == 0
    assert (await read(memory, job)).state is State.RUNNING


async def test_two_rescuers_at_once_rescue_each_job_once(memory, desk, clock):
    await memory.enqueue([a_job() for _ in range(20)])
    jobs = await claim(memory)
    clock.advance(LEASE + 1)
    await memory.end_expired()
    await asyncio.gather(*(a_rescuer(memory, desk).rescue() for _ in range(3)))

    assert {(await read(memory, job)).losses for job in jobs} == {1}


@pytest.mark.parametrize("known", ["here", "only in the store"])
async def test_a_task_that_must_never_run_twice_is_dead_when_its_worker_disappears(
    memory, desk, clock, known
):
    app = Rota(store=memory, settings=Settings.load(url="memory://"))
    never = Retry(lost=False)

    if known == "here":

        @app.task(name="email", retry=never)
        async def email() -> None: ...

    else:
        await memory.publish([TaskSpec("email", retry=never)])
    await memory.enqueue([a_job("email")])
    [job] = await claim(memory)
    clock.advance(LEASE + 1)
    await memory.end_expired()
    await a_rescuer(memory, desk, app.tasks).rescue()
    dead = await read(memory, job)

    assert (dead.state, dead.error_class) == (State.DEAD, "lost")


def test_the_rescuer_sleeps_until_the_earliest_lease_ends_and_no_longer_than_a_lease(memory, desk):
    rescuer = a_rescuer(memory, desk)

    assert 12.0 <= rescuer.pause(None) <= 15.0
    assert 12.0 <= rescuer.pause(30.0) <= 15.0
    assert 8.0 <= rescuer.pause(8.0) <= 8.3
    assert 2.0 <= rescuer.pause(2.0) <= 2.3
    assert 1.0 <= rescuer.pause(0.0) <= 1.3


async def test_the_janitor_tidies_at_once_and_says_what_it_removed(memory, clock, caplog):
    caplog.set_level("INFO", "rota.worker")
    session = await a_session(memory)
    await memory.end_session(session)
    clock.advance(timedelta(days=2).total_seconds())
    janitor = asyncio.create_task(Janitor(memory, Retention()).run())
    await until(lambda: "tidied: 1 sessions." in caplog.text)
    janitor.cancel()

    assert await memory.sessions() == []


async def test_the_sampler_looks_in_the_next_minute_how_deep_the_queues_are(memory, clock, monkeypatch):
    due = asyncio.Event()
    assert 0.0 < sampler.until_next() <= sampler.MINUTE + sampler.SPREAD
    monkeypatch.setattr(sampler, "until_next", lambda: 0.01 if due.is_set() else 3600.0)
    await memory.enqueue([a_job(queue="mail")])
    patient = asyncio.create_task(sampler.Sampler(memory).run())
    await asyncio.sleep(0.05)
    assert not memory._book.depths  # a worker that starts has better things to do
    patient.cancel()

    due.set()
    looking = asyncio.create_task(sampler.Sampler(memory).run())
    await until(lambda: memory._book.depths)
    looking.cancel()

    [*_, last] = (await memory.depths(60.0, 60.0)).slices
    assert last.of("mail") == Depth(pending=1)


async def test_the_sampler_looks_at_what_takes_room_once_in_five_minutes(memory, monkeypatch):
    minutes, looks = iter(range(12)), []
    now = [0]
    monkeypatch.setattr(sampler, "until_next", lambda: 0.0)
    monkeypatch.setattr(sampler, "time", lambda: now[0] * 60.0 + 3.0)

    async def note_room() -> bool:
        looks.append(now[0])
        return True

    monkeypatch.setattr(memory, "note_room", note_room)
    looking = sampler.Sampler(memory)
    for now[0] in minutes:
        await looking.step()

    assert looks == [0, 5, 10]


async def test_the_unparker_puts_jobs_back_whose_gate_is_free(memory, desk, clock):
    await memory.enqueue([a_job(gate="g"), a_job(gate="g")])
    await claim(memory)
    [parked] = [job for job in memory._book.in_state(State.PENDING) if job.parked]
    [running] = memory._book.in_state(State.RUNNING)
    memory._book.put(running._replace(state=State.COMPLETED))
    desk.lanes[0].dry = True
    unparker = asyncio.create_task(Unparker(memory, desk).run())
    await until(lambda: not desk.lanes[0].dry)
    unparker.cancel()

    assert (await read(memory, parked)).parked is None


async def test_a_worker_keeps_the_store_tidy_and_its_tasks_known(stage):
    @stage.app.task(queue="mail", retry=Retry(attempts=7))
    async def email(to: str) -> None: ...

    await stage.work()
    [spec] = await stage.store.tasks()

    assert (spec.name, spec.queue, spec.retry.attempts) == ("email", "mail", 7)


async def test_jobs_behind_one_gate_run_one_after_another(stage):
    running = most = 0

    @stage.app.task(serial="account")
    async def work(account: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    worker = await stage.work()
    handles = await work.enqueue_many([(7,) for _ in range(5)])
    for handle in handles:
        await stage.ended(handle)

    assert most == 1
    assert worker.desk.gates_seen
