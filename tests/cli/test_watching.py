"""Changes of source files are noticed, and nothing else is."""

from __future__ import annotations

import os

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
