"""Logs of jobs: "keep the newest lines of these attempts in place of what was kept of each before"."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import LEASE, NOON, a_job, a_running_job, a_session, claim, completed, new_id, rescue
from rota._core.job import Job
from rota._core.job_log import KEPT, LogLine, LogTail, kept_line, newest
from rota.stores.contract import Retention, Store


def said(*messages: str) -> tuple[LogLine, ...]:
    return tuple(LogLine(NOON + timedelta(milliseconds=n), "INFO", text) for n, text in enumerate(messages))


def tail(job: Job, *messages: str, written: int | None = None, location: str | None = None) -> LogTail:
    return LogTail(job.id, job.version, job.attempt, said(*messages), written or len(messages), location)


@pytest.mark.req("D23")
async def test_the_newest_lines_are_kept_with_where_the_whole_log_is(store: Store):
    job = await a_running_job(store)
    kept = tail(job, "one", "zwei ☃", written=712, location="file:///var/log/rota/1.log")

    await store.keep_logs([kept])

    assert await store.logs(job.id) == [kept]
    assert await store.logs(new_id()) == []


async def test_a_later_tail_replaces_an_earlier_one_and_an_older_one_changes_nothing(store: Store):
    job = await a_running_job(store)
    await store.keep_logs([tail(job, "one")])
    await store.keep_logs([tail(job, "one", "two")])
    await store.keep_logs([tail(job, "one")])  # a lost answer, repeated late

    assert await store.logs(job.id) == [tail(job, "one", "two")]


@pytest.mark.scenario(4)
@pytest.mark.req("D23")
async def test_lines_of_a_stale_attempt_never_show_as_those_of_the_new_one(store: Store, clock):
    await store.enqueue([a_job()])
    [slow] = await claim(store, await a_session(store, "slow"))
    await store.keep_logs([tail(slow, "slow: begun")])
    clock.advance(LEASE + 1)
    await rescue(store)
    [fast] = await claim(store, await a_session(store, "fast"))
    await store.keep_logs([tail(fast, "fast: begun")])
    await store.keep_logs([tail(slow, "slow: begun", "slow: woke up")])

    assert fast.version > slow.version
    assert await store.logs(slow.id) == [
        tail(slow, "slow: begun", "slow: woke up"),
        tail(fast, "fast: begun"),
    ]


async def test_many_attempts_are_kept_in_one_step(store: Store):
    await store.enqueue([a_job() for _ in range(12)])
    jobs = await claim(store)

    await store.keep_logs([tail(job, str(job.id)) for job in jobs])
    await store.keep_logs([])

    for job in jobs:
        assert await store.logs(job.id) == [tail(job, str(job.id))]


async def test_logs_go_when_their_job_goes(store: Store, clock):
    job = await a_running_job(store)
    await store.keep_logs([tail(job, "one")])
    await store.settle([completed(job)])
    await store.tidy(Retention())
    assert len(await store.logs(job.id)) == 1

    clock.advance(9 * 86_400)
    await store.tidy(Retention())

    assert await store.get([job.id]) == []
    assert await store.logs(job.id) == []


@pytest.mark.req("D23")
def test_a_tail_is_bounded_in_lines_and_size_and_a_line_holds_no_secrets():
    lines = [kept_line(NOON, 20, f"line {n}") for n in range(200)]
    assert [line.message for line in newest(lines)] == [f"line {n}" for n in range(150, 200)]
    assert len(newest(lines)) == KEPT

    long = [kept_line(NOON, 40, "x" * 9_000) for _ in range(50)]
    assert len(long[0].message) == 2_000
    assert sum(len(line.message) for line in newest(long)) <= 65_536
    assert kept_line(NOON, 30, "password=hunter2 \x00") == LogLine(NOON, "WARNING", "password=*** ␀")
