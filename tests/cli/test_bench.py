"""`rota bench`: honest figures on a database of its own, which leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from build import a_session
from rota.cli import exits
from rota.cli.benching import Figure, _picked


@pytest.fixture
def databases(administrator):
    """The names of the databases on the server."""
    return lambda: {row[0] for row in administrator.execute("SELECT datname FROM pg_database")}


def left_behind(databases) -> set[str]:
    return {name for name in databases() if name.startswith("rota_bench_")}


@pytest.mark.slow
def test_each_figure_stands_beside_plain_sql_of_the_same_run_and_nothing_is_left(rota, jobs, databases):
    mine = jobs.add()
    said = rota("bench", "--seconds", "1", "--json")

    assert said.code == 0, said.err
    figures = json.loads(said.out)
    names = [figure["name"] for figure in figures]
    assert names[:3] == ["enqueue, one by one", "enqueue in bulk", "drain, 100 slots"]
    assert all(figure["rota"] > 0 and figure["raw"] > 0 for figure in figures)
    assert all(figure["ratio"] == pytest.approx(figure["rota"] / figure["raw"]) for figure in figures)
    assert left_behind(databases) == set()
    assert [job.id for job in jobs.do(lambda store: store.get([mine]))] == [mine]


def test_where_workers_are_at_work_it_is_refused_until_that_is_wanted(rota, jobs, databases):
    jobs.do(lambda store: a_session(store, lease=600))
    said = rota("bench", "--seconds", "1")

    assert (said.code, said.out) == (exits.PROBLEMS, "")
    assert "1 worker is at work on this server, and a benchmark would slow them down. Add --yes" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_in_the_middle_it_drops_its_database(jobs, databases, number):
    command = [sys.executable, "-m", "rota.cli", "bench", "--seconds", "20"]
    bench = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert bench.stderr.readline() == "Making a database of its own …\n"
    while not left_behind(databases):
        assert bench.poll() is None
    bench.send_signal(number)
    _, words = bench.communicate(timeout=100)

    assert bench.returncode == exits.INTERRUPTED
    assert words.endswith("Stopped; nothing more was done.\n")
    assert left_behind(databases) == set()


@pytest.mark.slow
def test_an_embedded_store_is_measured_on_a_server_of_its_own(process, tmp_path):
    said = process("bench", "--seconds", "1", timeout=110)

    assert said.code == 0, said.err
    assert len(said.lines) >= 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--seconds", "0.1"), "--seconds 0.1 tells nothing: give from 1 to 600"),
        (("--url", "memory://"), "a memory store has no server to measure"),
    ],
)
def test_what_cannot_be_measured_is_refused(rota, given, said):
    answer = rota("bench", *given)

    assert answer.code == exits.USAGE
    assert said in answer.err


def test_a_server_that_is_not_there_is_exit_3(rota):
    assert rota("bench", "--url", "postgresql://127.0.0.1:1/none").code == exits.UNREACHABLE


def test_pick_ups_are_told_only_when_there_are_enough_of_them():
    assert _picked([0.1] * 4, [0.01]) == []
    half, late = _picked([0.1] * 95 + [0.5] * 6, [0.01, 0.01, 0.04])

    assert (half.rota, half.raw, late.rota) == (0.1, 0.01, 0.5)
    assert Figure("x", "/s", 5.0, 0.0, "nothing").ratio is None
