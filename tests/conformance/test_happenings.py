"""What those who watch are told: what runs, what happened, what takes room."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import Clock, a_job, a_running_job, a_session, by_hand, claim, completed, failed, partial, snoozed
from letters import a_letter, reprocessed
from rota._core.actions import Verb
from rota._core.failure import ErrorClass
from rota._core.happening import CodeVersion, Happening, HappeningFilter, Mark, Memory, Share
from rota._core.retry import Retry
from rota._core.task_spec import TaskSpec
from rota.stores.contract import Store
from rota.stores.postgres.watching import first_id

ALL = HappeningFilter()


@pytest.fixture
def new_job(clock: Clock):
    """Makes jobs with ids of the clock's time, as producers do."""
    numbers = iter(range(1, 1000))

    def make(task: str = "email", **fields):
        return a_job(
            task, id=first_id(clock.now).__class__(int=first_id(clock.now).int | next(numbers)), **fields
        )

    return make


async def told(store: Store, mark: Mark, wanted: HappeningFilter = ALL, limit: int = 100) -> list[Happening]:
    return Memory().new(await store.happened(mark, wanted, limit=limit))


def words(news: list[Happening]) -> list[str]:
    return [one.kind.value for one in news]


async def test_a_life_is_told_as_it_happened(store: Store, clock: Clock, new_job):
    mark = Mark(clock.now)
    job = new_job(tenant="acme", queue="mail")
    await store.enqueue([job])
    clock.advance(2)
    [first] = await claim(store)
    [started] = [one for one in await told(store, mark) if one.kind == "started"]
    clock.advance(1)
    await store.settle([failed(first, retry=Retry(base=2.0, jitter=0.0), now=clock.now)])
    [one] = [one for one in await told(store, mark) if one.kind == "failed"]
    clock.advance(2)
    [second] = await claim(store)
    clock.advance(0.5)
    await store.settle([completed(second)])
    news = await told(store, mark)

    assert words(news) == ["enqueued", "failed", "completed"]
    assert {(one.job_id, one.task, one.queue, one.tenant) for one in news} == {
        (job.id, "email", "mail", "acme")
    }
    assert (started.attempt, started.wait) == (1, 2.0)
    assert (one.attempt, one.run, one.why) == (1, 1.0, "ValueError: boom")
    assert one.next_at == clock.now - timedelta(seconds=0.5)
    assert (news[-1].attempt, news[-1].run) == (2, 0.5)


async def test_a_death_is_told_once_with_its_error(store: Store, clock: Clock):
    mark = Mark(clock.now)
    job = await a_running_job(store)
    clock.advance(1)
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE, "no such address")])
    news = [one for one in await told(store, mark) if one.kind != "enqueued"]

    assert words(news) == ["died"]
    assert "no such address" in news[0].why


async def test_partial_and_cancelled_ends_are_told_and_who_cancelled(store: Store, clock: Clock):
    mark = Mark(clock.now)
    await store.settle([partial(await a_running_job(store))])
    waiting = a_job()
    await store.enqueue([waiting])
    await by_hand(store, (await store.get([waiting.id]))[0], Verb.CANCEL)
    news = await told(store, mark)

    assert {"partial", "cancelled", "acted"} <= set(words(news))
    [act] = [one for one in news if one.kind == "acted"]
    assert act.job_id == waiting.id
    assert act.task == "email"
    assert act.why.startswith("cancel by ")


async def test_each_look_goes_on_where_the_last_one_ended(store: Store, clock: Clock, new_job):
    memory, mark = Memory(), Mark(clock.now)
    seen = []
    for _ in range(3):
        await store.enqueue([new_job()])
        [job] = await claim(store)
        await store.settle([completed(job)])
        look = await store.happened(mark, ALL, limit=100)
        seen.append(words(memory.new(look)))
        mark = look.mark
        clock.advance(1)

    assert seen == [["enqueued", "completed"]] * 3


async def test_what_happened_long_before_the_mark_is_not_told_again(store: Store, clock: Clock, new_job):
    await store.enqueue([new_job()])
    [job] = await claim(store)
    await store.settle([completed(job)])
    clock.advance(60)

    assert await told(store, Mark(clock.now)) == []


async def test_midnight_loses_nothing(store: Store, clock: Clock, new_job):
    clock.now = clock.now.replace(hour=23, minute=59, second=59)
    mark = (await store.happened(Mark(clock.now), ALL, limit=10)).mark
    ended = []
    for _ in range(2):
        await store.enqueue([new_job()])
        [job] = await claim(store)
        await store.settle([completed(job)])
        ended.append(job.id)
        clock.advance(2)

    news = await told(store, mark)
    assert [one.job_id for one in news if one.kind == "completed"] == ended


async def test_no_day_between_is_left_out(store: Store, clock: Clock, new_job):
    mark, ended = Mark(clock.now), []
    for _ in range(4):
        await store.enqueue([new_job()])
        [job] = await claim(store)
        await store.settle([completed(job)])
        ended.append(job.id)
        clock.advance(86_400)

    look = await store.happened(mark, ALL, limit=100)
    assert [one.job_id for one in Memory().new(look) if one.kind == "completed"] == ended
    assert not look.more


async def test_two_things_that_are_done_to_a_job_at_one_moment_are_both_told(store: Store, clock: Clock):
    letter = await a_letter(store)
    mark = Mark(clock.now)
    await reprocessed(store, letter.job)
    done = [one.why.partition(" by ")[0] for one in await told(store, mark) if one.kind == "acted"]

    assert done == ["job_dlq_reprocess_requested", "job_dlq_reprocess_success"]


async def test_filters_leave_the_rest_out(store: Store, clock: Clock, new_job):
    mark = Mark(clock.now)
    jobs = [new_job(), new_job("export"), new_job(queue="mail"), new_job(tenant="acme")]
    await store.enqueue(jobs)
    for job in await claim(store):
        await store.settle([completed(job)])

    for place, wanted in enumerate(
        (HappeningFilter(task="export"), HappeningFilter(queue="mail"), HappeningFilter(tenant="acme")), 1
    ):
        assert {one.job_id for one in await told(store, mark, wanted)} == {jobs[place].id}


async def test_too_much_is_said_to_be_too_much(store: Store, clock: Clock, new_job):
    mark = Mark(clock.now)
    await store.enqueue([new_job() for _ in range(12)])
    look = await store.happened(mark, ALL, limit=10)

    assert look.more
    assert len(look.news) == 10
    assert not (await store.happened(mark, ALL, limit=100)).more


async def test_what_runs_is_listed_longest_first(store: Store, clock: Clock):
    session = await a_session(store, lease=600)
    ids = []
    for task in ("slow", "quick"):
        job = a_job(task, tenant="acme", timeout=30.0)
        await store.enqueue([job, a_job("later", delay=3600)])
        await claim(store, session)
        ids.append(job.id)
        clock.advance(10)

    found = await store.running(limit=10)
    assert [work.id for work in found] == ids
    assert (found[0].task, found[0].tenant, found[0].session_id) == ("slow", "acme", session)
    assert clock.now - found[0].claimed_at == timedelta(seconds=20)
    assert (found[0].attempt, found[0].timeout, found[0].cancelling) == (1, 30.0, False)
    assert len(await store.running(limit=1)) == 1


@pytest.mark.req("L28", "V24")
async def test_jobs_that_run_for_more_than_an_hour_stand_before_all_others(store: Store, clock: Clock):
    session = await a_session(store, lease=86_400)
    stuck, busy = a_job("export", tenant="acme"), a_job("mail")
    await store.enqueue([stuck])
    await claim(store, session)
    clock.advance(3_000)
    await store.enqueue([busy])
    await claim(store, session)
    clock.advance(700)

    found = await store.running(limit=10)
    assert [work.id for work in found] == [stuck.id, busy.id]
    assert [work.task for work in found if clock.now - work.claimed_at > timedelta(hours=1)] == ["export"]


async def test_a_snoozed_job_runs_no_more(store: Store):
    await store.settle([snoozed(await a_running_job(store))])

    assert await store.running(limit=10) == []


@pytest.mark.req("L40")
async def test_the_task_that_takes_most_room_is_found_with_its_largest_job(store: Store):
    small, large = (
        a_job("email", {"to": "a"}),
        a_job("export", {"rows": [str(n * 7919) for n in range(3000)]}),
    )
    await store.enqueue([small, a_job("email"), large])
    first, second = await store.payload_sizes(cap=100)

    assert (first.task, first.jobs, first.example) == ("export", 1, large.id)
    assert first.largest == first.average > 5_000
    assert (second.task, second.jobs, second.example) == ("email", 2, small.id)
    assert sum(one.jobs for one in await store.payload_sizes(cap=2)) == 2


async def test_who_has_the_slots_is_counted_by_queue_and_tenant(store: Store):
    """For whom jobs run now, by queue and tenant, the most first."""
    await store.enqueue(
        [a_job(queue="mail", tenant="acme") for _ in range(3)]
        + [a_job(queue="mail"), a_job(queue="slow", tenant="acme"), a_job(queue="slow", tenant="blue")]
    )
    await claim(store)
    await store.enqueue([a_job(queue="mail", tenant="waits")])

    assert await store.running_by_tenant() == [
        Share("mail", "acme", 3),
        Share("mail", None, 1),
        Share("slow", "acme", 1),
        Share("slow", "blue", 1),
    ]


async def test_code_versions_are_told_with_when_they_were_first_seen(store: Store, clock: Clock):
    """The code versions that tasks were published with, those that were first seen last, newest first."""
    first = clock.now
    await store.publish([TaskSpec("email", code_version="v1")])
    clock.advance(60)
    await store.publish([TaskSpec("email", code_version="v2"), TaskSpec("post", code_version="v1")])

    assert await store.code_versions(limit=5) == [CodeVersion("v2", clock.now), CodeVersion("v1", first)]
    assert await store.code_versions(limit=1) == [CodeVersion("v2", clock.now)]
