"""What prints: values to stdout, words to stderr, drawings only where a person looks."""

from __future__ import annotations

import io
import os
import sys

import pexpect
import pytest

from rota.cli import output
from rota.cli.exits import Wrong
from rota.cli.output import Output


def test_words_never_mix_with_values(capsys):
    out = Output()
    out.words("for people")
    out.text("for scripts")

    said = capsys.readouterr()

    assert (said.out, said.err) == ("for scripts\n", "for people\n")


def test_words_are_cleaned_too(capsys):
    Output().words("queue \x1b[31mred\x1b[0m")

    assert capsys.readouterr().err == "queue red\n"


def test_a_table_in_a_pipe_has_no_header_and_one_line_a_row(capsys):
    Output().table(("a", "b"), [(1, "x\ty"), (None, "z\n")], records=[{"a": 1}, {"a": 2}])

    assert capsys.readouterr().out == "1\tx y\n\tz\n"


def test_columns_are_aligned_in_a_pipe(capsys):
    Output().columns(("task", "jobs"), [("a_long_name", 1), ("b", 20)])

    assert capsys.readouterr().out == "task         jobs\na_long_name  1\nb            20\n"


def test_a_dumb_terminal_gets_no_drawing(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")

    assert not Output().terminal


def test_progress_in_a_log_is_said_every_ten_seconds_only(capsys, monkeypatch):
    now = 100.0
    monkeypatch.setattr(output.time, "monotonic", lambda: now)
    with Output().progress("retry", 500) as advance:
        for _ in range(25):
            now += 1
            advance(int(now - 100) * 10)

    assert capsys.readouterr().err == "retry: 100 of 500 (10/s)\nretry: 200 of 500 (10/s)\n"


def test_a_question_without_anybody_to_answer_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))

    with pytest.raises(Wrong, match=r"Delete it\? Nobody can answer that here: add --yes"):
        Output().confirm("Delete it?", yes=False)


def test_a_yes_that_was_given_asks_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))

    Output().confirm("Delete it?", yes=True)


def test_a_bulk_action_on_a_terminal_asks_draws_a_bar_and_sums_up(jobs):
    jobs.add(times=60)
    child = pexpect.spawn(
        sys.executable,
        ["-m", "rota.cli", "jobs", "hold", "--task", "greet"],
        env={**os.environ, "TERM": "xterm-256color"},
        encoding="utf-8",
        timeout=30,
    )

    child.expect(r"Hold 60 jobs\? \[y/N\]")
    child.sendline("y")
    child.expect("━")
    child.expect("hold: 60 jobs done")
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == 0
