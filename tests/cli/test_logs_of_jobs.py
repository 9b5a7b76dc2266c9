"""`rota jobs logs`, and the log in `rota jobs show`."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from build import NOON, failed
from rota._core.failure import ErrorClass
from rota._core.job_log import LogLine, LogTail
from rota.cli.job_logs import unseen
from rota.stores.postgres import PostgresStore


@pytest.fixture
def logged(jobs):
    """A job with two attempts that logged."""
    job_id = jobs.add()
    tails = [
        LogTail(job_id, 2, 1, (LogLine(NOON, "ERROR", "no such\nfeed"),), 1),
        LogTail(job_id, 4, 2, (LogLine(NOON, "INFO", "line 999"),), 1000, "file:///var/log/rota/x.log"),
    ]
    jobs.do(lambda store: store.keep_logs(tails))
    return job_id


@pytest.mark.req("D23")
def test_the_lines_of_every_attempt_are_shown_oldest_first(rota, logged):
    said = rota("jobs", "logs", logged)

    at = f"{NOON:%Y-%m-%d %H:%M:%S}.000"
    assert said.out == f"{at} ERROR   no such\nfeed\n{at} INFO    line 999\n"
    assert said.err == (
        "Attempt 1: 1 line.\n"
        "Attempt 2: 1,000 lines, the newest 1 are here; the whole is at file:///var/log/rota/x.log.\n"
    )
    assert rota("jobs", "logs", logged, "--attempt", "1").out == f"{at} ERROR   no such\nfeed\n"


@pytest.mark.req("D23")
def test_as_json_there_are_entries_and_a_location(rota, logged):
    _, second = json.loads(rota("jobs", "logs", logged, "--json").out)
    shown = json.loads(rota("jobs", "show", logged, "--json").out)["logs"]

    assert second["entries"] == [{"timestamp": NOON.isoformat(), "level": "INFO", "message": "line 999"}]
    assert (second["attempt"], second["version"], second["written"]) == (2, 4, 1000)
    assert shown == {"entries": second["entries"], "log_location": "file:///var/log/rota/x.log"}


def test_a_job_that_logged_nothing_says_so_and_one_that_is_not_there_too(rota, jobs, logged):
    silent = jobs.add()

    said = rota("jobs", "logs", silent)
    assert (said.code, said.out) == (4, "")
    assert said.err == "It logged nothing. Handlers log by current_job().log, or by logging.\n"
    assert "Attempt 3 logged nothing." in rota("jobs", "logs", logged, "--attempt", "3").err
    assert "no job has the id" in rota("jobs", "logs", UUID(int=1)).err
    assert json.loads(rota("jobs", "show", silent, "--json").out)["logs"] == {
        "entries": [],
        "log_location": None,
    }


def test_following_says_each_line_once_until_the_job_has_ended(rota, jobs, monkeypatch):
    job = jobs.run()
    lines = tuple(LogLine(NOON, "INFO", f"line {number}") for number in range(3))
    looks = iter([lines[:1], lines[:1], lines])

    async def passing(_seconds):
        """Between two looks the job goes on; in the last one it has ended."""
        kept = next(looks, None)
        store = PostgresStore(jobs.url)
        if kept is not None:
            await store.keep_logs([LogTail(job.id, job.version, 1, kept, len(kept))])
        else:
            await store.settle([failed(job, ErrorClass.NON_RETRYABLE, "enough")])
        await store.close()

    monkeypatch.setattr("asyncio.sleep", passing)

    said = rota("jobs", "logs", job.id, "--follow")

    assert [line.rpartition("INFO")[2].strip() for line in said.lines] == ["line 0", "line 1", "line 2"]
    assert said.err == "The job is dead.\n"


def test_lines_that_came_too_quickly_are_counted():
    lines = tuple(LogLine(NOON, "INFO", str(number)) for number in range(2))

    assert unseen(LogTail(UUID(int=1), 1, 1, lines, 10), 5) == (lines, 3)
    assert unseen(LogTail(UUID(int=1), 1, 1, lines, 10), 9) == (lines[1:], 0)
    assert unseen(LogTail(UUID(int=1), 1, 1, lines, 10), 10) == ((), 0)
