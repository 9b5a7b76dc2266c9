"""The supervisor's opinions, without any process: what a block says, what it means, and what becomes of jobs."""

from __future__ import annotations

import os
from math import inf
from uuid import uuid4

import pytest

from build import a_job
from rota._core.failure import ErrorClass
from rota._core.outcome import Cancelled, Crashed, HandedBack, Lost, Raised
from rota._core.retry import Retry
from rota.config import Settings
from rota.errors import ConfigError
from rota.worker.session import Session
from rota.worker.supervisor.block import SIZE, Block, Entry, Phase, Sight, shared_file
from rota.worker.supervisor.health import Address
from rota.worker.supervisor.judging import overrun, pause_before_restart, stuck, user_frames
from rota.worker.supervisor.leash import Ends
from rota.worker.supervisor.report import CrashReport, Ending, Running
from rota.worker.supervisor.verdict import verdict

NOBODY: dict = {}


@pytest.fixture
def block():
    fd = shared_file(SIZE)
    block = Block(fd)
    os.close(fd)
    yield block
    block.close()


def sight(ticked: float = 100.0, phase: Phase = Phase.WORKING) -> Sight:
    return Sight(ticked, ticked, ticked, 0.0, 0, 0, 0, 0, False, phase, uuid4(), None)


def entry(due: float = inf, stop: int = 0) -> Entry:
    return Entry(uuid4(), 3, 0, stop, 90.0, due)


def report(job_id=None, **known) -> CrashReport:
    fields = {
        "number": 1, "pid": 7, "session": uuid4(), "exit_code": None, "signal": 9, "ended_for": None, "culprits": (),
        "running": (), "begun": frozenset(), "tick_age": 0.1, "rss": None, "stack": "", "last_lines": (),
    }  # fmt: skip
    return CrashReport(**(fields | known))


def running(job) -> Running:
    return Running(job_id=job.id, version=job.version, task=job.task, seconds=2.0, on_loop=True)


@pytest.fixture
async def job(store):
    from build import a_session, claim

    await store.enqueue([a_job()])
    [claimed] = await claim(store, await a_session(store))
    return claimed


# Judging


@pytest.mark.parametrize(
    ("seen", "now", "answer"),
    [
        (sight(100.0), 100.9, False),
        (sight(100.0), 101.2, True),
        (sight(100.0, Phase.ENDING), 200.0, False),
        (sight(0.0, Phase.OPENING), 200.0, False),
    ],
)
def test_a_loop_is_stuck_when_a_working_child_has_not_ticked_for_a_while(seen, now, answer):
    assert stuck(seen, now, stall=0.2) is answer


@pytest.mark.parametrize(
    ("due", "stop", "ticked", "now", "late"),
    [
        (101.0, 0, 100.0, 105.0, False),  # within the grace of 5 s
        (101.0, 0, 100.0, 106.6, True),
        (101.0, 0, 106.3, 107.0, False),  # the loop turned since: the child sees to it itself
        (101.0, 1, 100.0, 101.6, True),  # told to stop already: its grace is in `due`
        (inf, 0, 100.0, 9999.0, False),  # no timeout
    ],
)
def test_a_job_has_overrun_when_its_deadline_and_grace_passed_while_the_loop_stood_still(
    due, stop, ticked, now, late
):
    found = overrun([entry(due, stop)], sight(ticked), now, 5.0, told=NOBODY, cleared=())

    assert bool(found) is late


def test_a_cancel_that_the_child_could_not_hear_sets_a_deadline_too():
    endless = entry()
    told = {endless.job_id: 100.0}

    assert overrun([endless], sight(99.0), 105.6, 5.0, told=told, cleared=()) == [endless]
    assert overrun([endless], sight(99.0), 104.0, 5.0, told=told, cleared=()) == []
    assert overrun([endless], sight(99.0), 105.6, 5.0, told=told, cleared={endless.job_id}) == []


def test_restarts_come_at_once_first_and_ever_more_slowly_then():
    able = [pause_before_restart(deaths, able=True) for deaths in range(1, 12)]
    unable = [pause_before_restart(deaths, able=False) for deaths in range(1, 12)]

    assert able[0] == 0.0
    assert 0.5 <= able[1] <= 1.0
    assert max(able) <= 2.0
    assert 0.3 <= unable[0] <= 0.5
    assert 20.0 <= unable[-1] <= 30.0


def test_the_innermost_line_of_the_user_is_taken_from_each_thread():
    stack = (
        'Thread 0x01 (most recent call first):\n  File "/py/threading.py", line 3 in wait\n'
        '  File "/app/jobs.py", line 12 in crunch\n  File "/app/jobs.py", line 5 in outer\n\n'
        'Current thread 0x02 (most recent call first):\n  File "/py/selectors.py", line 9 in select\n'
        '  File "<frozen runpy>", line 88 in _run_code\n'
    )

    assert user_frames(stack, ("/py",)) == ["/app/jobs.py, line 12, crunch()"]


# The verdict


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_what_never_began_goes_back_even_if_it_may_never_be_run_twice(job):
    assert isinstance(verdict(report(), job, Retry(lost=False), None), HandedBack)


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_what_was_running_in_a_child_that_died_by_itself_is_a_suspect(job):
    last = report(running=(running(job),), last_lines=("about to burn",), stack="in burn()")
    outcome = verdict(last, job, Retry(), None)

    assert isinstance(outcome, Crashed)
    assert not outcome.alone
    assert "SIGKILL" in outcome.failure.message
    assert "about to burn" in (outcome.failure.stack or "")


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_what_had_ended_but_was_not_written_is_a_suspect_too(job):
    outcome = verdict(report(begun=frozenset({(job.id, job.version)})), job, Retry(), None)

    assert isinstance(outcome, Crashed)


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_an_earlier_claim_of_the_same_job_does_not_count_as_begun(job):
    outcome = verdict(report(begun=frozenset({(job.id, job.version - 2)})), job, Retry(), None)

    assert isinstance(outcome, HandedBack)


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_where_the_supervisor_ended_the_child_only_the_guilty_job_pays(job):
    def judged(ending, *, guilty, lost=True):
        culprits = (job.id,) if guilty else (uuid4(),)
        last = report(ended_for=ending, culprits=culprits, running=(running(job),))
        return verdict(last, job, Retry(lost=lost), 2.0)

    timed_out = judged(Ending.OVERRUN, guilty=True)
    assert isinstance(timed_out, Raised)
    assert timed_out.failure.error_class is ErrorClass.TIMEOUT
    assert "longer than its timeout of 2 s" in timed_out.failure.message
    assert isinstance(judged(Ending.CANCEL, guilty=True), Cancelled)
    for ending in Ending:
        assert isinstance(judged(ending, guilty=False), HandedBack)
        assert isinstance(judged(ending, guilty=False, lost=False), Lost)


def test_a_report_says_how_a_child_ended():
    assert report().how == "was killed by SIGKILL"
    assert report(signal=40).how == "was killed by signal 40"
    assert report(signal=None, exit_code=3).how == "exited with code 3"


# The block


def test_the_last_lines_of_a_log_outlive_many_before_them(block):
    for number in range(2000):
        block.write_line(f"line {number}\nand more")

    lines = block.last_lines()
    assert lines[-1] == "line 1999 | and more"
    assert all(line.endswith("| and more") for line in lines)
    assert len(lines) > 100


def test_a_beat_that_the_supervisor_sent_prolongs_the_trust_in_that_session_only(block):
    from rota.worker.supervisor.shown import Shown

    shown = Shown(block, {})
    session = Session(uuid4(), 15.0, -1000.0, shown.kept)
    assert not session.trusted
    from time import monotonic

    block.keep(uuid4(), monotonic())
    assert not session.trusted
    block.keep(session.id, monotonic())
    assert session.trusted


# Small things


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("8081", ("127.0.0.1", 8081)),
        ("0.0.0.0:9", ("0.0.0.0", 9)),
        ("[::1]:80", ("::1", 80)),
        (8081, ("127.0.0.1", 8081)),
    ],
)
def test_a_health_port_is_of_this_machine_unless_it_is_said_otherwise(text, meant):
    assert Address.parse(text) == meant


@pytest.mark.parametrize("text", ["", "http", "1.2.3.4:", "99999"])
def test_a_health_port_that_makes_no_sense_is_refused(text):
    with pytest.raises(ConfigError, match="Write a port such as 8081"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("text", "size"), [("512MB", 512 << 20), ("2 GiB", 2 << 30), ("1.5g", 3 << 29), ("1048576", 1 << 20)]
)
def test_sizes_are_read_as_people_write_them(text, size):
    assert Settings.load(url="memory://", max_rss=text).max_rss == size


def test_a_size_that_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="write it like 512MB"):
        Settings.load(url="memory://", max_rss="lots")


def test_what_binds_a_child_survives_the_command_line():
    ends = Ends(5, 6, 7, 1, 4242)

    assert Ends.parse(str(ends)) == ends
    with pytest.raises((ValueError, TypeError)):
        Ends.parse("5,6")
