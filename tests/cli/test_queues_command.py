"""`rota queues purge`: its name is asked for, what waits is cancelled, what runs is left alone."""

from __future__ import annotations

import io
import json
import sys

import pytest

from rota._core.job import State
from rota.cli import exits
from rota.cli.commands import Call
from rota.cli.main import run


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def types(capsys, monkeypatch):
    """Call a command and type an answer."""

    def call(answer: str, *arguments: str):
        monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
        capsys.readouterr()
        return run(Call(), list(arguments)), capsys.readouterr().err

    return call


def test_what_waits_is_cancelled_and_what_runs_is_left_alone(rota, jobs):
    running = jobs.run(queue="mail")
    waiting = jobs.add(times=3, queue="mail")
    other = jobs.add(queue="slow")

    planned = rota("queues", "purge", "mail", "--dry-run", "--json")
    said = rota("queues", "purge", "mail", "--yes", "--reason", "sent by hand")

    assert json.loads(planned.out) == {"queue": "mail", "dry_run": True, "matched": 3, "capped": False}
    assert said.code == exits.DONE
    assert said.lines[0].split("\t")[1:] == ["finished", "3", "0", "0"]
    assert {jobs.get(one).state for one in waiting} == {State.CANCELLED}
    assert {jobs.get(one).reason for one in waiting} == {"sent by hand"}
    assert (jobs.get(running.id).state, jobs.get(other).state) == (State.RUNNING, State.PENDING)
    assert rota("queues", "purge", "mail", "--yes").code == exits.NOTHING


def test_it_asks_for_the_name(jobs, types):
    waiting = jobs.add(queue="mail")

    wrong, refused = types("male", "queues", "purge", "mail")
    kept = jobs.get(waiting).state
    right, _ = types("mail", "queues", "purge", "mail")

    assert (wrong, kept) == (exits.PROBLEMS, State.PENDING)
    assert "Cancel 1 job of the queue mail? What runs is left alone. Type its name" in refused
    assert "'male' was typed, and the queue is 'mail'. Nothing was purged." in refused
    assert (right, jobs.get(waiting).state) == (exits.DONE, State.CANCELLED)


def test_without_somebody_to_ask_it_needs_yes(rota, jobs):
    waiting = jobs.add(queue="mail")

    said = rota("queues", "purge", "mail")

    assert said.code != exits.DONE
    assert "add --yes to do it, or --dry-run" in said.err
    assert jobs.get(waiting).state is State.PENDING


def test_how_far_back_may_stand_before_or_after_the_verb(rota, jobs):
    jobs.add(queue="mail", delay=3600.0)

    answers = [
        rota("queues", "--since", "10m"),
        rota("queues", "--since", "10m", "list"),
        rota("queues", "list", "--since", "10m"),
    ]

    assert [said.code for said in answers] == [exits.DONE] * 3
    assert len({said.out for said in answers}) == 1
