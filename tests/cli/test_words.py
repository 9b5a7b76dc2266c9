"""Values in the words of people."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from rota._core.lengths import last
from rota.cli.words import ago, as_json, cell, clean, many, percent, span

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stored", "printed"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("bell\x07 back\x08space del\x7f", "bell backspace del"),
        ("over\rwritten", "overwritten"),
        ("windows\r\nline", "windows\nline"),
        ("\u202egnihtemos\u202c", "gnihtemos"),
        ("unfinished \x1b[", "unfinished "),
        ("Grüße, 日本", "Grüße, 日本"),
    ],
)
def test_stored_text_cannot_steer_the_terminal(stored, printed):
    assert clean(stored) == printed


def test_a_cell_is_one_field_of_one_line():
    assert cell("a\tb\nc") == "a b c"
    assert cell(None) == ""
    assert cell(("x", "y")) == "x,y"
    assert cell(NOW) == "2026-03-01T12:00:00+00:00"


def test_json_is_exact_and_still_cannot_steer_the_terminal():
    value = {"text": "\x1b[31m\x9b2J \u202e Grüße", "wait": timedelta(seconds=1.5), "at": NOW}

    text = as_json(value)

    assert not any(symbol in text for symbol in "\x1b\x9b\u202e")
    assert "Grüße" in text
    assert json.loads(text) == {"text": value["text"], "wait": 1.5, "at": "2026-03-01T12:00:00+00:00"}


def test_json_survives_a_lone_surrogate():
    text = as_json({"text": "\ud800"})

    assert text.encode("utf-8")
    assert json.loads(text) == {"text": "\ud800"}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0ms"),
        (0.0421, "42ms"),
        (0.9999, "1s"),
        (1.25, "1.2s"),
        (59.97, "1m"),
        (200, "3m 20s"),
        (3600, "1h"),
        (7500, "2h 5m"),
        (187_200, "2d 4h"),
    ],
)
def test_a_length_of_time_has_at_most_two_units(seconds, words):
    assert span(seconds) == span(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.3, "now"), (-0.3, "now"), (200, "3m ago"), (-300, "in 5m"), (90_000, "1d ago")]
)
def test_a_moment_is_said_as_seen_from_now(seconds, words):
    assert ago(NOW - timedelta(seconds=seconds), NOW) == words


def test_numbers_agree_with_their_noun():
    assert (many(1, "job"), many(0, "job"), many(1284, "job")) == ("1 job", "0 jobs", "1,284 jobs")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (3600, "hour"),
        (60, "minute"),
        (86_400, "day"),
        (300, "5 minutes"),
        (7200, "2 hours"),
        (90.5, "1m 30s"),
    ],
)
def test_how_far_back_numbers_reach_reads_after_in_the_last(seconds, said):
    assert last(seconds) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0, "0 %"), (0.004, "0.4 %"), (0.02, "2.0 %"), (0.0999, "10 %"), (0.31, "31 %"), (1.0, "100 %")],
)
def test_a_share_has_a_space_before_its_sign(share, said):
    assert percent(share) == said
