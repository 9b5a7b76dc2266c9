"""Finding jobs by what no single field says: arguments, errors, times, priorities, workers; and in other orders."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from build import (
    LEASE,
    Clock,
    a_job,
    a_running_job,
    a_session,
    claim,
    completed,
    failed,
    new_id,
    partial,
)
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota._core.job_filter import LISTED, ArgumentIs, JobFilter, LeftOut
from rota.stores.contract import SessionStart, Store
from rota.stores.tally_contract import Tally


async def found(store: Store, **asked) -> list:
    return [job.id for job in await store.find(JobFilter(**asked))]


def has(path: str, value: str) -> ArgumentIs:
    return ArgumentIs(tuple(path.split(".")), value)


async def a_worker(store: Store, host: str, pid: int):
    session = SessionStart(uuid4(), host, pid, {"general": 5}, ("email",))
    await store.open_session(session, lease=LEASE)
    return session.id


@pytest.mark.req("D5")
async def test_the_jobs_of_a_conversation_are_listed_in_the_order_they_were_created(
    store: Store, clock: Clock
):
    made = []
    for task in ("upload", "transcribe", "answer"):
        made.append(a_job(task, correlation_id="conversation-12"))
        await store.enqueue([made[-1], a_job(task, correlation_id="conversation-13")])
        clock.advance(1)
    [running, *_] = await claim(store)
    await store.settle([completed(running)])

    listed = await store.find(JobFilter(correlation_id="conversation-12", oldest_first=True))
    assert [job.id for job in listed] == [job.id for job in made]
    assert [job.created_at for job in listed] == sorted(job.created_at for job in listed)


@pytest.mark.req("D4")
async def test_the_jobs_of_one_state_are_listed_in_the_order_they_were_created_page_by_page(
    store: Store, clock: Clock
):
    made = []
    for number in range(6):
        made.append(
            a_job(priority=100 - number, delay=60.0 * number)
        )  # neither urgency nor time is the order
        await store.enqueue([made[-1]])
        clock.advance(1)
    [running] = await claim(store)
    await store.settle([completed(running)])
    waiting = [job.id for job in made if job.id != running.id]

    first = await store.find(JobFilter(states=(State.PENDING,), oldest_first=True, limit=3))
    rest = await found(store, states=(State.PENDING,), oldest_first=True, before=first[-1].id)
    assert [job.id for job in first] + rest == waiting
    assert [job.created_at for job in first] == sorted(job.created_at for job in first)
    assert await found(store, states=(State.COMPLETED,), oldest_first=True) == [running.id]


@pytest.mark.req("D6")
async def test_the_jobs_of_a_task_are_listed_most_urgent_first_page_by_page(store: Store):
    done = await a_running_job(store, "email", priority=0)
    await store.settle([completed(done)])
    jobs = [a_job("email", priority=priority) for priority in (100, 5, 300, 5, 100)]
    await store.enqueue([*jobs, a_job("other", priority=0)])
    urgent = [jobs[place].id for place in (1, 3, 0, 4, 2)]

    asked = {"task": "email", "by_priority": True}
    assert await found(store, **asked) == urgent
    assert await found(store, **asked, limit=2) == urgent[:2]
    assert await found(store, **asked, limit=2, before=urgent[1], before_priority=5) == urgent[2:4]
    assert await found(store, **asked, before=urgent[3], before_priority=100) == urgent[4:]
    # The place of a job that is gone, or whose priority was changed meanwhile, is where it was.
    assert await found(store, **asked, before=UUID(int=7), before_priority=100) == urgent[2:]
    assert await found(store, **asked, before=new_id(), before_priority=5) == urgent[2:]
    assert await found(store, **asked, before=urgent[0], before_priority=100) == urgent[3:]
    assert await found(store, **asked, before=urgent[0]) == []  # half a place is none
    assert await found(store, **asked, states=(State.RUNNING,)) == []
    assert await found(store, **asked, states=(State.COMPLETED,)) == []


@pytest.mark.req("D7")
async def test_what_a_worker_holds_is_listed_by_its_host_its_process_or_its_session(store: Store):
    one, two = await a_worker(store, "web-1", 11), await a_worker(store, "web-1", 12)
    held = []
    for session in (one, two):
        await store.enqueue([a_job()])
        held += await claim(store, session)
    await store.settle([completed(held[1])])
    await store.enqueue([a_job()])

    assert await found(store, worker="web-1") == [held[1].id, held[0].id]
    assert await found(store, worker="web-1", states=(State.RUNNING,)) == [held[0].id]
    assert await found(store, worker="web-1:12") == [held[1].id]
    assert await found(store, session_id=one, states=(State.RUNNING,)) == [held[0].id]
    assert await found(store, worker="web-1:13") == []
    assert await found(store, worker="web-2") == []


async def test_jobs_are_found_by_their_arguments(store: Store):
    payloads: list[dict] = [
        {"user": {"id": 7}, "flag": True, "note": "a b"},
        {"user": {"id": "7"}, "flag": None, "tags": ["red", "blue"]},
        {"user": {"id": 7.0}, "n": 12345678901234567890, "items": [{"sku": "x"}, {"sku": "y"}]},
        {"user": 7, 'od"d': "it's 50% {} \\ 😀", "flag": 1},
    ]
    jobs = [a_job(payload=payload) for payload in payloads]
    await store.enqueue(jobs)
    done = await a_running_job(store, payload={"user": {"id": 7}, "n": -0.5})
    await store.settle([completed(done)])
    ids = [*(job.id for job in jobs), done.id]

    for asked, places in (
        ([has("user.id", "7")], [4, 2, 1, 0]),
        ([has("user.id", "7"), has("flag", "true")], [0]),
        ([has("flag", "1")], [3]),
        ([has("flag", "null")], [1]),
        ([has("nothing", "null")], []),
        ([has("note", "a b")], [0]),
        ([has("tags", "blue")], [1]),
        ([has("items.sku", "y")], [2]),
        ([has("n", "12345678901234567890")], [2]),
        ([has("n", "12345678901234567891")], []),
        ([has("n", "-0.5")], [4]),
        ([ArgumentIs(('od"d',), "it's 50% {} \\ 😀")], [3]),
        ([has("user", "7")], [3]),
    ):
        assert await found(store, args=tuple(asked)) == [ids[place] for place in places], asked


async def test_jobs_are_found_by_how_they_failed_unless_they_got_over_it(store: Store, clock: Clock):
    async def failing(type_name: str, kind: ErrorClass):
        job = await a_running_job(store)
        wrong = failed(job, kind)
        assert wrong.failure is not None
        await store.settle([wrong._replace(failure=wrong.failure._replace(type=type_name))])
        return job.id

    dead = await failing("smtplib.SmtpError", ErrorClass.NON_RETRYABLE)
    retrying = await failing("TimeoutError", ErrorClass.RETRYABLE)
    ends = {await failing("TimeoutError", ErrorClass.RETRYABLE): end for end in (completed, partial)}
    clock.advance(3600)
    again = await claim(store)
    await store.settle([ends[job.id](job) for job in again if job.id in ends])

    assert await found(store, error="SmtpError") == [dead]
    assert await found(store, error="smtplib.SmtpError") == [dead]
    assert await found(store, error="pError") == []
    assert await found(store, error="TimeoutError") == [retrying]
    assert await found(store, error="non_retryable") == [dead]
    assert await found(store, error="SmtpError", states=(State.PENDING,)) == []


async def test_jobs_are_found_by_when_they_were_made_and_when_they_ended(store: Store, clock: Clock):
    began = clock.now
    ids = []
    for _ in range(3):
        ids.append((await a_running_job(store)).id)
        clock.advance(60)
    await store.settle([completed(job) for job in await store.get(ids[:2])])
    at = [began + timedelta(seconds=60 * minute) for minute in range(5)]

    assert await found(store, created_from=at[1]) == [ids[2], ids[1]]
    assert await found(store, created_until=at[1]) == [ids[0]]
    assert await found(store, created_from=at[1], created_until=at[2]) == [ids[1]]
    assert await found(store, created_until=at[0]) == []
    assert await found(store, finished_from=at[3]) == [ids[1], ids[0]]
    assert await found(store, finished_from=at[3] + timedelta(seconds=1)) == []
    assert await found(store, finished_until=at[4], created_from=at[1]) == [ids[1]]


async def test_jobs_are_found_by_a_range_of_priorities_and_by_their_ids(store: Store):
    jobs = [a_job(priority=priority) for priority in (0, 50, 100)]
    await store.enqueue(jobs)
    ids = [job.id for job in jobs]

    assert await found(store, priority_to=50) == [ids[1], ids[0]]
    assert await found(store, priority_from=50) == [ids[2], ids[1]]
    assert await found(store, priority_from=50, priority_to=50) == [ids[1]]
    assert await found(store, ids=(ids[2], ids[0], new_id())) == [ids[2], ids[0]]
    assert await found(store, ids=(new_id(),)) == []


async def test_jobs_are_found_by_their_category(store: Store):
    mine = a_job(category="ingestion")
    await store.enqueue([mine, a_job(category="sync"), a_job()])

    assert await found(store, category="ingestion") == [mine.id]
    assert await found(store, category="export") == []


async def test_jobs_are_tallied_by_state_category_and_error_for_a_tenant_or_for_all(store: Store):
    dead = await a_running_job(store, category="sync", tenant="acme")
    await store.settle([failed(dead, ErrorClass.NON_RETRYABLE)])
    done = await a_running_job(store, category="sync", tenant="acme")
    await store.settle([completed(done)])
    await store.enqueue(
        [a_job(tenant="acme"), a_job(tenant="acme"), a_job(category="sync", tenant="umbrella")]
    )

    mine = {
        Tally(State.DEAD, "sync", "non_retryable", 1),
        Tally(State.COMPLETED, "sync", None, 1),
        Tally(State.PENDING, None, None, 2),
    }
    assert set(await store.tally("acme", cap=100)) == mine
    assert set(await store.tally(cap=100)) == mine | {Tally(State.PENDING, "sync", None, 1)}
    assert await store.tally("nobody", cap=100) == []


async def test_what_would_be_listed_is_counted_up_to_a_cap(store: Store):
    done = await a_running_job(store, queue="mail")
    await store.settle([completed(done)])
    jobs = [a_job(payload={"n": number % 2}, queue="mail", priority=number) for number in range(5)]
    await store.enqueue([*jobs, a_job()])
    mail = JobFilter(queue="mail", limit=1)

    assert await store.count_found(mail, cap=100) == 6
    assert await store.count_found(mail, cap=4) == 4
    assert await store.count_found(mail._replace(args=(has("n", "1"),)), cap=100) == 2
    assert await store.count_found(mail._replace(before=jobs[2].id), cap=100) == 3
    assert await store.count_found(mail._replace(before=jobs[2].id, oldest_first=True), cap=100) == 2
    assert await store.count_found(mail._replace(by_priority=True), cap=100) == 5
    assert await store.count_found(mail._replace(by_priority=True, states=(State.DEAD,)), cap=100) == 0
    assert await store.count_found(mail._replace(worker="nowhere"), cap=100) == 0


async def test_what_is_asked_narrows_together_and_in_pages(store: Store):
    jobs = [a_job(payload={"n": number % 2}, queue="mail", priority=number) for number in range(8)]
    await store.enqueue([*jobs, a_job(payload={"n": 1})])
    odd = [job.id for job in jobs[1::2]]

    asked = {"args": (has("n", "1"),), "queue": "mail", "priority_to": 6}
    assert await found(store, **asked, limit=2) == [odd[2], odd[1]]
    assert await found(store, **asked, limit=2, before=odd[1]) == [odd[0]]
    assert await found(store, **asked, oldest_first=True) == odd[:3]


async def test_a_session_that_claims_nothing_is_no_worker_of_any_job(store: Store):
    await a_session(store)
    await store.enqueue([a_job()])

    assert await found(store, worker="nowhere", states=(State.PENDING,)) == []


@pytest.mark.parametrize("order", [{}, {"oldest_first": True}, {"by_priority": True}])
async def test_a_brief_list_tells_the_size_of_what_is_long_in_the_same_order(store: Store, order: dict):
    long = {"text": "\u00e4" * LISTED}
    jobs = [
        a_job("email", payload, priority=50 + n % 2) for n, payload in enumerate([{}, long, {"a": 1}, long])
    ]
    await store.enqueue(jobs)

    whole = await store.find(JobFilter(**order))
    brief = await store.find(JobFilter(**order, brief=True))

    assert [job.id for job in brief] == [job.id for job in whole]
    for job, seen in zip(whole, brief, strict=True):
        if job.payload == long:
            assert isinstance(seen.payload_json, LeftOut)
            assert (seen.payload, seen.payload_json.size) == ({}, len(job.payload_json.encode()))
            assert seen._replace(payload_json=job.payload_json) == job
        else:
            assert seen == job
    assert await store.count_found(JobFilter(**order, brief=True), cap=10) == 4


async def test_a_brief_list_tells_the_size_of_a_long_result(store: Store):
    short, long = await a_running_job(store), await a_running_job(store)
    await store.settle([completed(short, {"ok": True}), completed(long, "x" * 2 * LISTED)])

    [second, first] = await store.find(JobFilter(brief=True))
    assert (first.result, isinstance(first.result_json, LeftOut)) == ({"ok": True}, False)
    assert isinstance(second.result_json, LeftOut)
    assert (second.result, second.result_json.size) == (None, 2 * LISTED + 2)


async def test_jobs_that_wait_for_another_attempt_are_found_and_counted(store: Store, clock: Clock):
    """`counts` says of pending jobs how many wait for another attempt; `attempt_from` and `attempt_to` find them."""
    session = await a_session(store, lease=1e6)
    jobs = [a_job("email", max_attempts=5) for _ in range(3)]
    await store.enqueue(jobs)
    running = await claim(store, session)
    await store.settle([failed(job, ErrorClass.RETRYABLE, now=clock.now) for job in running])
    clock.advance(3600)
    [again, *others] = await claim(store, session)
    await store.settle([failed(again, ErrorClass.RETRYABLE, now=clock.now)])
    fresh = a_job("email")
    await store.enqueue([fresh])
    waits, runs = again.id, sorted((job.id for job in others), reverse=True)

    assert await found(store, states=(State.PENDING,), attempt_from=1) == [waits]
    assert await found(store, attempt_from=2) == sorted([waits, *runs], reverse=True)
    assert await found(store, attempt_to=0) == [fresh.id]
    assert await found(store, attempt_from=3) == []
    assert await store.count_found(JobFilter(states=(State.PENDING,), attempt_from=1), cap=9) == 1
    assert {(count.state, count.jobs, count.retrying) for count in await store.counts()} == {
        (State.PENDING, 2, 1),
        (State.RUNNING, 2, 0),
    }
