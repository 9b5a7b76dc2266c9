"""Changes of source files are noticed, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rota.cli.watching import Watch


@pytest.fixture
def project(tmp_path):
    (tmp_path / "jobs.py").write_text("one")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "mail.py").write_text("one")
    return tmp_path


def test_nothing_changed_is_nothing_said(project):
    assert Watch([project]).changed() == []


def test_a_saved_file_is_named_once(project):
    watch = Watch([project])
    (project / "package" / "mail.py").write_text("two!")

    assert watch.changed() == [str(project / "package" / "mail.py")]
    assert watch.changed() == []


def test_a_file_of_the_same_length_is_noticed_by_its_time(project):
    watch = Watch([project])
    os.utime(project / "jobs.py", ns=(1, 1))

    assert watch.changed() == [str(project / "jobs.py")]


def test_new_and_removed_files_are_changes(project):
    watch = Watch([project])
    (project / "new.py").write_text("")
    (project / "jobs.py").unlink()

    assert watch.changed() == [str(project / "jobs.py"), str(project / "new.py")]


@pytest.mark.parametrize("place", [".git", "__pycache__", "node_modules", ".venv", "venv"])
def test_what_nobody_edits_by_hand_is_not_watched(project, place):
    (project / place).mkdir()
    if place == "venv":
        (project / place / "pyvenv.cfg").write_text("")
    watch = Watch([project])
    (project / place / "mod.py").write_text("new")

    assert watch.changed() == []


def test_other_files_are_not_watched_but_settings_are(project):
    watch = Watch([project])
    (project / "server.log").write_text("new")
    (project / "rota.toml").write_text("new")

    assert watch.changed() == [str(project / "rota.toml")]


def test_a_directory_that_disappears_ends_nothing(project):
    watch = Watch([project, project / "package"])
    (project / "package" / "mail.py").unlink()
    (project / "package").rmdir()

    assert watch.changed() == [str(project / "package" / "mail.py")]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nofile.py", "there is no file 'nofile.py'"),
        ("nothing.py", "'nothing.py' has no Rota app"),
        ("nomodule:app", "there is no module 'nomodule'"),
    ],
)
def test_what_is_no_app_is_not_watched(process, tmp_path, embedded, named, said):
    (tmp_path / "nothing.py").write_text("x = 1")
    answer = process("dev", named, "--no-dashboard", "--url", embedded)

    assert answer.code == 2
    assert said in answer.err
    assert "waiting for a change" not in answer.err


def test_the_help_says_what_watch_does(rota):
    assert "Watch this directory too" in " ".join(rota("dev", "--help").out.split())


def test_an_app_that_is_broken_for_now_is_waited_for(tmp_path, embedded):
    (tmp_path / "broken.py").write_text("from rota import Rota\napp = Rota(")
    dev = subprocess.Popen(
        [sys.executable, "-m", "rota.cli", "dev", "broken.py", "--no-dashboard", "--url", embedded],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = [dev.stderr.readline() for _ in range(3)]
    finally:
        dev.terminate()
        dev.communicate(timeout=60)

    assert "SyntaxError" in said[1]
    assert said[2] == "The worker ended with exit code 2; waiting for a change.\n"
    assert dev.returncode == 0


def test_a_worker_that_reloads_runs_the_code_as_it_is_saved(tmp_path, embedded):
    (tmp_path / "jobs.py").write_text(
        "from rota import Rota\napp = Rota()\n\n@app.task\ndef one() -> None: ...\n"
    )
    worker = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "rota.cli",
            "worker",
            "jobs.py",
            "--reload",
            "-q",
            "mail:3",
            "--url",
            embedded,
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    said: list[str] = []

    def until(word: str) -> str:
        while not said or word not in said[-1]:
            said.append(worker.stderr.readline())
            assert said[-1], said
        return said[-1]

    try:
        first = until("worker started")
        with (tmp_path / "jobs.py").open("a") as code:
            code.write("\n@app.task\ndef two() -> None: ...\n")
        until("jobs.py changed; restarting the worker.")
        second = until("worker started")
    finally:
        worker.terminate()
        worker.communicate(timeout=60)

    assert "mail=3 (mail)" in first
    assert "1 tasks" in first
    assert "2 tasks" in second
    assert worker.returncode == 0


@pytest.mark.parametrize("more", [("--drain",), ("--health-port", "8081"), ("--processes", "2")])
def test_reloading_is_for_the_desk(rota, more):
    said = rota("worker", "jobs.py", "--reload", *more)

    assert said.code == 2
    assert "--reload is for the desk" in said.err
