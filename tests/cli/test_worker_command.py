"""`rota worker` and `rota dev`: real processes on a real database."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pexpect
import psutil
import pytest

from rota._core.job import State
from rota.cli.draining import COUNTED, Bar, Scope, left
from rota.stores.contract import JobFilter

pytestmark = pytest.mark.slow  # real processes, each with a start of its own


class Process:
    """A command that runs on; what it says is collected in a file."""

    def __init__(self, tmp_path, *arguments):
        self.log = tmp_path / f"said-{time.monotonic_ns()}"
        with self.log.open("w") as said:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "rota.cli", *arguments],
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
            )

    @property
    def said(self):
        return self.log.read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()


def eventually(truth, within=30.0):
    end = time.monotonic() + within
    while not truth():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.mark.req("D34")
def test_drain_runs_what_is_due_and_what_is_retried_then_ends(process, rota, jobs, app):
    greet = jobs.add("greet", payload={"name": "Ann"})
    shaky = jobs.add("shaky", max_attempts=3)
    later = jobs.add("greet", payload={"name": "Later"}, delay=3600.0)
    unknown = jobs.add("somebody_elses")

    said = process("worker", "jobs.py", "--drain")

    assert said.code == 0, said.err
    assert jobs.get(greet).result == "Hello, Ann!"
    assert (jobs.get(shaky).state, jobs.get(shaky).result) == (State.COMPLETED, 2)
    assert (jobs.get(later).state, jobs.get(unknown).state) == (State.PENDING, State.PENDING)
    assert "worker started: lanes fast=3 (fast), general=5 (every queue)" in said.err


def test_a_drain_of_a_store_that_only_its_child_sees_is_refused(process, jobs, tmp_path):
    (tmp_path / "inside.py").write_text('from rota import Rota\napp = Rota("memory://")\n')

    said = process("worker", "inside.py", "--drain")

    assert said.code == 2
    assert "this app's (memory) lives in its process. Add --processes 0." in said.err


def test_drain_is_done_at_once_when_there_is_nothing(process, jobs, app):
    assert process("worker", "--drain").code == 0


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_drain_ticks_no_schedules(process, jobs, tmp_path, processes):
    (tmp_path / "ticking.py").write_text(
        "from rota import Rota, Retry, every\n\napp = Rota()\n\n\n"
        "@app.schedule(every('1s'))\n@app.task\ndef poll() -> None: ...\n\n\n"
        "@app.task(retry=Retry(attempts=2, base=1.5))\ndef shaky() -> None:\n    raise ValueError('again')\n"
    )
    shaky = jobs.add("shaky", max_attempts=2)

    said = process("worker", "ticking.py", "--drain", "--processes", processes)

    assert said.code == 0, said.err
    assert jobs.get(shaky).attempt == 2
    assert jobs.do(lambda store: store.roster()).schedules == ()
    assert jobs.do(lambda store: store.find(JobFilter(task="poll"))) == []


def test_a_queue_narrows_the_worker_to_it(process, jobs, app):
    mail = jobs.add("greet", payload={"name": "Ann"}, queue="mail")
    fast = jobs.add("greet", payload={"name": "Bob"}, queue="fast")

    said = process("worker", "--queue", "mail", "-c", "2", "--drain")

    assert said.code == 0, said.err
    assert "lanes general=2 (mail)" in said.err
    assert (jobs.get(mail).state, jobs.get(fast).state) == (State.COMPLETED, State.PENDING)


def test_tasks_and_tenant_narrow_the_worker_too(process, jobs, app):
    mine = jobs.add("greet", payload={"name": "Ann"}, tenant="acme")
    other_tenant = jobs.add("greet", payload={"name": "Bob"}, tenant="other")
    other_task = jobs.add("broken", tenant="acme", queue="default")

    said = process("worker", "--tasks", "greet,shaky", "--tenant", "acme", "--drain")

    assert said.code == 0, said.err
    assert jobs.get(mine).state is State.COMPLETED
    assert (jobs.get(other_tenant).state, jobs.get(other_task).state) == (State.PENDING, State.PENDING)


def test_a_stopped_worker_finishes_what_runs_and_a_second_signal_hands_it_back(jobs, app, tmp_path):
    job_id = jobs.add("endless")

    with Process(tmp_path, "worker", "jobs.py") as worker:
        eventually(lambda: jobs.get(job_id).state is State.RUNNING)
        worker.popen.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert worker.popen.poll() is None
        worker.popen.send_signal(signal.SIGTERM)

        assert worker.popen.wait(20) == 1
    job = jobs.get(job_id)
    assert (job.state, job.attempt) == (State.PENDING, 0)


def test_the_url_of_the_command_line_reaches_the_app(process, jobs, app, monkeypatch):
    job_id = jobs.add("greet", payload={"name": "Ann"})
    monkeypatch.delenv("ROTA_URL")

    said = process("worker", "jobs.py", "--drain", "--url", jobs.url)

    assert said.code == 0, said.err
    assert jobs.get(job_id).state is State.COMPLETED


def test_an_app_that_names_its_store_in_code_is_not_moved_silently(rota, jobs, tmp_path, monkeypatch):
    (tmp_path / "fixed.py").write_text(
        "from rota import Rota\napp = Rota('postgresql://ann:secret@db/shop')\n"
    )
    monkeypatch.setenv("ROTA_URL", "unset")  # so that what the command sets is undone after the test

    said = rota("worker", "fixed.py", "--url", jobs.url)

    assert said.code == 2
    assert (
        "but the app names postgresql://ann:***@db/shop in its code. Write `app = Rota()` there" in said.err
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lane", "fast"], "lane 'fast' is not understood. Write name=slots, such as fast=3"),
        (["--lane", "fast=0"], "lane 'fast' has 0 slots"),
        (["--lane", "fast=3", "-c", "5"], "--lane and --concurrency were both given"),
        (["--tasks", "gret"], "no task is named 'gret' here; did you mean 'greet'?"),
        (["-c", "0"], "0 is not in the range 1<=x<=10000"),
    ],
)
def test_options_of_a_worker_that_make_no_sense_are_usage_errors(rota, jobs, app, options, words):
    said = rota("worker", "jobs.py", *options)

    assert said.code == 2
    assert words in " ".join(said.err.split())


def test_a_worker_on_a_database_without_the_schema_says_which_command_to_run(process, bare, app):
    said = process("worker", "jobs.py", "--url", bare)

    assert said.code == 1
    assert "Run `rota migrate`." in said.err


def test_a_worker_can_migrate_first(process, bare, app):
    said = process("worker", "jobs.py", "--url", bare, "--migrate", "--drain")

    assert said.code == 0
    assert "applied." in said.err


def test_an_app_without_tasks_is_pointed_out(process, jobs, tmp_path):
    (tmp_path / "empty.py").write_text("from rota import Rota\napp = Rota()\n")

    said = process("worker", "empty.py", "--drain")

    assert "The app has no tasks, so nothing will run. Import the modules that define them in it." in said.err


@pytest.mark.slow
def test_dev_migrates_runs_and_restarts_when_a_file_is_saved(bare, app, tmp_path, rota, monkeypatch):
    monkeypatch.setenv("ROTA_URL", bare)

    with Process(tmp_path, "dev") as dev:
        eventually(lambda: dev.said.count("worker started") == 1)
        eventually(lambda: "Dashboard: http://127.0.0.1:" in dev.said)
        before = rota("enqueue", "greet", "name=Ann", "--wait", "--timeout", "20s")
        app.write_text(app.read_text().replace("Hello", "Goodbye"))
        eventually(lambda: dev.said.count("worker started") == 2)
        after = rota("enqueue", "greet", "name=Ann", "--wait", "--timeout", "20s")
        app.write_text("def broken(:")
        eventually(lambda: "waiting for a change" in dev.said)
        app.write_text(
            "from rota import Rota\napp = Rota()\n@app.task\ndef greet(name: str) -> str: return name\n"
        )
        eventually(lambda: dev.said.count("worker started") == 3)
        dev.popen.send_signal(signal.SIGINT)
        code = dev.popen.wait(20)

    assert code == 0
    assert (before.out, after.out) == ('"Hello, Ann!"\n', '"Goodbye, Ann!"\n')
    assert f"Watching {tmp_path}" in dev.said
    assert dev.said.count("Dashboard: ") == 1
    assert "jobs.py changed; restarting the worker." in dev.said
    assert "jobs.py could not be imported: SyntaxError" in dev.said
    assert dev.said.endswith("Stopped.\n")


def test_when_dev_is_killed_its_worker_and_its_dashboard_end_too(bare, app, tmp_path, monkeypatch):
    monkeypatch.setenv("ROTA_URL", bare)
    with Process(tmp_path, "dev") as dev:
        eventually(lambda: "worker started" in dev.said and "Dashboard: " in dev.said)
        children = psutil.Process(dev.popen.pid).children()
        dev.popen.kill()
        gone, left = psutil.wait_procs(children, timeout=20)

    assert (len(gone), left) == (2, [])


def test_dev_without_an_app_says_how_to_begin(rota, jobs):
    said = rota("dev")

    assert said.code == 2
    assert "`rota init` writes a first one." in said.err


@pytest.mark.parametrize(
    ("fields", "keeps_going"),
    [
        ({}, True),
        ({"delay": 60.0}, False),
        ({"queue": "other"}, False),
        ({"task": "unknown"}, False),
        ({"tenant": "b"}, False),
        ({"held": True}, False),
    ],
)
def test_a_drain_goes_on_only_for_what_its_worker_would_take(jobs, fields, keeps_going):
    from rota.admin import Admin

    jobs.add(**{"task": "greet", "tenant": "a", "queue": "mail"} | fields)
    scope = Scope(("greet",), ("mail",), "a")

    assert jobs.do(lambda store: left(Admin(store, actor="test"), scope)) == keeps_going


def test_a_drain_looks_beyond_a_page_of_scheduled_jobs(jobs, monkeypatch):
    from rota.admin import Admin

    monkeypatch.setattr("rota.cli.draining.PAGE", 3)
    jobs.add(times=7, delay=3600.0)
    jobs.add()

    assert jobs.do(lambda store: left(Admin(store, actor="test"), Scope(("greet",), None, None)))


def test_a_drain_waits_for_a_job_that_is_running_or_will_be_retried(jobs):
    from build import failed
    from rota.admin import Admin

    scope = Scope(("greet",), None, None)
    job = jobs.run()
    running = jobs.do(lambda store: left(Admin(store, actor="test"), scope))
    jobs.do(lambda store: store.settle([failed(job)]))

    assert running
    assert jobs.do(lambda store: left(Admin(store, actor="test"), scope))


def test_a_queue_with_slots_gets_a_lane_of_its_own_and_the_others_share(process, jobs, app):
    mail = jobs.add("greet", payload={"name": "Ann"}, queue="mail")
    plain = jobs.add("greet", payload={"name": "Bob"})
    fast = jobs.add("greet", payload={"name": "Cem"}, queue="fast")

    said = process("worker", "-q", "mail:10,default", "--drain")

    assert said.code == 0, said.err
    assert "mail=10 (mail)" in said.err
    assert "general=5 (default)" in said.err
    states = [jobs.get(one).state for one in (mail, plain, fast)]
    assert states == [State.COMPLETED, State.COMPLETED, State.PENDING]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("-q", "mail:10,mail"), "queue 'mail' was given twice"),
        (("-q", "general:9,mail"), "say the lanes by --lane, such as --lane a=9:general --lane b=5:mail"),
        (("-q", "mail", "-q", "mail:3"), "queue 'mail' was given twice"),
        (("-q", ","), "names no queue"),
        (("-q", "mail:10", "--lane", "fast=3"), "--lane and --queue mail:10 were both given"),
    ],
)
def test_queues_that_make_no_sense_are_said_before_anything_starts(rota, jobs, app, given, said):
    answer = rota("worker", *given)

    assert answer.code == 2
    assert said in answer.err


def test_the_bar_of_a_drain_moves_from_the_most_it_saw_to_nothing():
    moved = []
    bar = Bar(lambda done, note="", *, total=None: moved.append((done, note, total)))
    for jobs_left in (COUNTED, 4, 6, 1, 0):
        bar.look(jobs_left)

    assert moved[0] == (0, "1,000+ jobs left", None)
    assert moved[1] == (COUNTED - 4, "4 jobs left", COUNTED)
    assert moved[-1] == (COUNTED, "0 jobs left", COUNTED)


def test_a_drain_counts_what_is_left_no_further_than_it_is_asked(jobs):
    from rota.admin import Admin

    jobs.add(times=5)
    scope = Scope(("greet",), None, None)

    assert jobs.do(lambda store: left(Admin(store, actor="test"), scope, at_most=100)) == 5
    assert jobs.do(lambda store: left(Admin(store, actor="test"), scope, at_most=3)) == 3


def test_ctrl_c_in_a_drain_takes_its_bar_off_the_terminal(jobs, app):
    jobs.add("endless")
    child = pexpect.spawn(
        sys.executable,
        ["-m", "rota.cli", "worker", "--drain", "--processes", "0"],
        encoding="utf-8",
        timeout=60,
    )
    child.expect("1 job left")
    child.sendintr()
    child.expect(pexpect.EOF)

    assert "\x1b[?25h" in child.before, "the cursor stays hidden"
    child.close()
