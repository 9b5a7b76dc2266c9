"""`rota tail`: what happens, as it happens, once; through an outage, and until Ctrl-C."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest
from uuid_utils.compat import uuid7

from build import a_session, claim, completed, failed
from rota._core.failure import ErrorClass
from rota._core.job_log import LogLine, LogTail
from rota.cli import exits


class Followed:
    """A `rota tail` that runs beside the test."""

    def __init__(self, *options: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rota.cli", "tail", "--every", "100ms", *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def words(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline()

    def end(self) -> tuple[int, str, str]:
        self.process.send_signal(2)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.fixture
def follow(jobs):
    opened = []

    def start(*options: object, ready: bool = True) -> Followed:
        found = Followed(*options)
        opened.append(found)
        if ready:
            assert found.words().startswith("Following what happens")
        return found

    yield start
    for found in opened:
        if found.process.poll() is None:
            found.process.kill()
            found.process.wait(10)
        for pipe in (found.process.stdout, found.process.stderr):
            pipe.close()


def work(jobs, ending, task: str = "greet", **fields) -> object:
    """A job comes, runs and ends so."""
    job = jobs.run(task, id=uuid7(), **fields)
    jobs.do(lambda store: store.settle([ending(job)]))
    return job.id


def test_a_life_is_followed_line_by_line_and_ctrl_c_ends_it(jobs, follow):
    tail = follow()
    first = work(jobs, completed, queue="mail", tenant="acme")
    second = work(jobs, lambda job: failed(job, ErrorClass.NON_RETRYABLE, "no such address"))
    said = []
    while not said or "died" not in said[-1]:
        said.append(tail.line())
    code, rest, err = tail.end()

    told = [(line.split()[1], line.split()[3]) for line in said]
    assert [one for one in told if one[0] != "started"] == [
        ("enqueued", str(first)),
        ("completed", str(first)),
        ("enqueued", str(second)),
        ("died", str(second)),
    ]
    assert " greet " in said[0]
    assert " mail/acme" in said[0]
    assert "no such address" in said[-1]
    assert rest == ""
    assert code == exits.INTERRUPTED
    assert "Stopped" not in err
    assert "Traceback" not in err


def test_filters_narrow_and_json_has_one_object_a_line(jobs, follow):
    tail = follow("--task", "export", "--json")
    work(jobs, completed)
    job_id = work(jobs, failed, "export")
    kinds = []
    while "failed" not in kinds:
        told = json.loads(tail.line())
        assert (told["task"], told["job_id"]) == ("export", str(job_id))
        kinds.append(told["kind"])

    assert told["why"] == "ValueError: boom"
    assert told["attempt"] == 1
    assert told["next_at"] is not None


def test_what_happened_before_is_shown_when_asked_for(jobs, follow):
    job_id = work(jobs, completed)
    tail = follow("--since", "5m")

    assert tail.line().split()[1] == "enqueued"
    assert tail.line().split()[1:4:2] == ["completed", str(job_id)]


def test_one_job_is_followed_with_its_log_until_it_ends(jobs, follow):
    job = jobs.run("greet")
    at = job.claimed_at

    def log(*lines: str) -> LogTail:
        return LogTail(job.id, job.version, 1, tuple(LogLine(at, "INFO", line) for line in lines), len(lines))

    jobs.do(lambda store: store.keep_logs([log("one")]))
    tail = follow("--job", job.id, ready=False)
    said = [tail.line() for _ in range(3)]
    jobs.do(lambda store: store.keep_logs([log("one", "two")]))
    said.append(tail.line())
    jobs.do(lambda store: store.settle([completed(job)]))
    said.append(tail.line())
    tail.process.wait(30)

    assert [line.split()[1] for line in said] == ["enqueued", "started", "log", "log", "completed"]
    assert said[2].endswith("info: one")
    assert said[3].endswith("info: two")
    assert tail.process.returncode == exits.DONE


def test_a_job_that_is_not_there_is_said_at_once(rota, jobs):
    said = rota("tail", "--job", "0198c1a2-0000-7000-8000-000000000000")

    assert said.code == exits.NOTHING


def test_an_outage_is_waited_out_and_what_happened_in_it_is_told(jobs, follow, administrator):
    tail = follow()
    work(jobs, completed)
    while "completed" not in tail.line():
        pass
    name = urlsplit(jobs.url).path.strip("/")
    administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    administrator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    began = time.monotonic()
    try:
        away = tail.words()
    finally:
        administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    job_id = work(jobs, completed)
    said = [tail.line()]
    while "completed" not in said[-1]:
        said.append(tail.line())

    assert time.monotonic() - began < 60
    assert "Waiting for it; what happens meanwhile is shown then." in away
    assert tail.words().startswith("The store is back after ")
    assert str(job_id) in said[-1]


def test_a_reader_that_goes_away_ends_it_quietly(jobs):
    jobs.do(lambda store: a_session(store, lease=600))
    for _ in range(3):
        jobs.add(id=uuid7())

    async def run(store) -> None:
        for job in await claim(store):
            await store.settle([completed(job)])

    jobs.do(run)
    done = subprocess.run(
        [f"{sys.executable} -m rota.cli tail --since 5m --every 100ms | head -1; echo ${{PIPESTATUS[0]}}"],
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert "enqueued" in done.stdout
    assert "Traceback" not in done.stderr


def test_what_happens_is_followed_by_words_of_the_filter_language(rota, jobs, monkeypatch):
    seen = []

    async def all_of(admin, wanted, since, lines):
        seen.append(wanted)
        raise KeyboardInterrupt

    monkeypatch.setattr("rota.cli.tail._all", all_of)
    rota("tail", "queue:mail", "--task", "charge")

    assert (seen[0].queue, seen[0].task, seen[0].tenant) == ("mail", "charge", None)


def test_a_word_that_what_happens_cannot_tell_is_refused(rota, jobs):
    said = rota("tail", "state:dead")

    assert said.code == 2
    assert "follow by task:, queue: or tenant:" in said.err
