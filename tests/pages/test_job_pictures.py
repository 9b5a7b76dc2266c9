"""What a job's page is drawn from: the stretches of its life, its traces, its documents. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from build import a_stored_job
from rota._core.job import State
from rota._core.numbers import bucket
from rota.stores.contract import Attempt
from rota.web.pages.job import among
from rota.web.pages.snippets import snippets
from rota.web.pages.timeline import bars, stretches
from rota.web.pages.traces import parts
from rota.web.pages.trees import tree

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def tried(number: int, start: float, end: float, outcome: str = "retry") -> Attempt:
    id_ = UUID(int=7)
    return Attempt(
        id_, number, number, outcome, "retryable", "OSError", "no", None, id_, after(start), after(end)
    )


def life(job, attempts=(), now: float = 100) -> list[tuple[str, float]]:
    return [(one.tone, one.seconds) for one in stretches(job, attempts, after(now))]


def test_a_life_with_a_failure_is_told_from_its_making_to_its_end():
    job = a_stored_job(
        State.COMPLETED, attempt=2, run_at=after(30), claimed_at=after(40), finished_at=after(45)
    )

    assert life(job, [tried(1, 10, 12)]) == [
        ("wait", 10),
        ("bad", 2),
        ("back-off", 18),
        ("wait", 10),
        ("ok", 5),
    ]


@pytest.mark.parametrize(
    ("state", "fields", "told"),
    [
        (State.PENDING, {}, [("wait", 100)]),
        (State.PENDING, {"run_at": after(60)}, [("snoozed", 60), ("wait", 40)]),
        (State.PENDING, {"run_at": after(600)}, [("snoozed", 100)]),
        (State.HELD, {}, [("snoozed", 100)]),
        (State.BLOCKED, {}, [("wait", 100)]),
        (State.RUNNING, {"claimed_at": after(20)}, [("wait", 20), ("run", 80)]),
        (State.CANCELLED, {"finished_at": after(5)}, [("wait", 5)]),
        (State.CANCELLED, {"claimed_at": after(1), "finished_at": after(5)}, [("wait", 1), ("off", 4)]),
    ],
)
def test_a_life_without_a_failure_is_told_too(state, fields, told):
    assert life(a_stored_job(state, **fields)) == told


def test_a_job_that_died_and_was_retried_shows_how_long_it_was_dead():
    job = a_stored_job(State.RUNNING, run_at=after(60), claimed_at=after(60))

    assert life(job, [tried(1, 1, 2, "die")]) == [("wait", 1), ("bad", 1), ("off", 58), ("run", 40)]
    dead = a_stored_job(State.DEAD, claimed_at=after(1), finished_at=after(2.001))
    assert life(dead, [tried(1, 1, 2, "die")]) == [("wait", 1), ("bad", 1)]


def test_no_stretch_is_too_thin_to_be_seen_and_all_fit():
    job = a_stored_job(State.PENDING, run_at=after(86_000))
    found = bars(stretches(job, [tried(n, n, n + 0.001) for n in range(1, 6)], after(86_400)))

    assert min(bar.width for bar in found) >= 8
    assert found[-1].x + found[-1].width == pytest.approx(1000, abs=1)
    crowd = bars(stretches(job, [tried(n, n, n + 0.5) for n in range(1, 200)], after(300)))
    assert sum(bar.width for bar in crowd) == pytest.approx(1000, abs=20)


def test_a_trace_is_told_newest_first_with_its_causes():
    stack = (
        'Traceback (most recent call last):\n  File "/srv/a.py", line 1, in a\n    x()\nKeyError: 1\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "/x/site-packages/b.py", line 2, in b\n    y()\n'
        "ValueError: two\nlines\n"
    )
    last, first = parts(stack)

    assert (last.error, last.link, last.place) == ("ValueError: two\nlines", None, None)
    assert (first.error, first.link) == ("KeyError: 1", "raised while handling")
    assert (first.place.where, first.place.code) == ("srv/a.py:1 in a", "x()")
    assert [line.own for line in first.lines] == [False, True, True, False]
    assert parts(None) == parts(" \n") == ()
    assert parts("killed by SIGSEGV")[0].error == "killed by SIGSEGV"


@pytest.mark.parametrize(
    "number", ["9007199254740993", "1.10", "1e400", "-0.0", "123456789012345678901234567890"]
)
def test_numbers_are_shown_as_they_are_written(number):
    shown = tree(f'{{"n": {number}, "list": [{number}]}}')

    assert shown.nodes[0].text == number
    assert shown.nodes[1].inner[0].text == number


def test_what_is_hidden_is_marked_and_what_is_not_is_there():
    shown = tree(
        '{"to": "ann", "password": "hunter2", "card_number": 4111111111111111, "on": true, "no": null}'
    )

    assert [(node.name, node.kind) for node in shown.nodes] == [
        ("to", "text"),
        ("password", "hidden"),
        ("card_number", "hidden"),
        ("on", "word"),
        ("no", "word"),
    ]
    assert shown.hidden == 2
    assert "hunter2" not in str(shown)
    assert "4111" not in str(shown)
    assert "hunter2" in str(tree('{"password": "hunter2"}', reveal=True))


def test_a_document_that_is_too_large_for_a_tree_is_a_text_without_secrets():
    shown = tree(json.dumps({"rows": list(range(3000)), "password": "hunter2"}))

    assert shown.nodes == ()
    assert "2999" in shown.text
    assert "hunter2" not in shown.text
    assert tree(json.dumps(["x" * 100] * 3000)).cut
    assert tree(None) is None
    assert tree("{}").nodes == ()
    assert tree('"text"').nodes[0].text == "text"


def test_a_document_that_is_too_large_for_a_tree_keeps_its_numbers_as_they_are_written():
    rows = ",".join(["1"] * 3000)
    shown = tree(
        '{"price": 1.10, "none": [], "o": {}, "ä\\"b": [true, null, "x\\ny"], '
        f'"card_number": 4111111111111111, "rows": [{rows}]}}'
    )

    assert shown.text.startswith(
        '{\n  "price": 1.10,\n  "none": [],\n  "o": {},\n  "ä\\"b": [\n    true,\n    null,\n    "x\\ny"\n  ],\n'
        '  "card_number": "***",\n  "rows": [\n    1,\n    1,'
    )
    assert len(json.loads(shown.text)["rows"]) == 3000


def test_a_run_is_counted_among_the_others():
    found = among({bucket(0.1): 60, bucket(10): 40}, 1.0)

    assert (found.runs, found.slower) == (100, 0.4)
    assert sum(jobs for _, jobs, _ in found.columns) == 100
    assert [own for _, _, own in found.columns].count(True) == 1
    assert among({}, 1.0) is None
    assert len(among({0: 1, 121: 1}, 1.0).columns) <= 41


def test_snippets_quote_what_a_shell_or_python_would_read_otherwise():
    job = a_stored_job(task="a b", queue="q'x", tenant="red")
    python, shell, curl = snippets(job, {"to": "a'b", "not a name": 1}, "http://x/api/v1/jobs")

    assert python.text == (
        "await app.tasks['a b'].using(queue=\"q'x\", tenant='red').enqueue(**{'to': \"a'b\", 'not a name': 1})"
    )
    assert shell.text == """rota enqueue 'a b' 'to=a'"'"'b' 'not a name:=1' --queue 'q'"'"'x' --tenant red"""
    assert "Bearer $ROTA_TOKEN" in curl.text
    assert snippets(job._replace(payload_json="x" * 5000), {}, "") == ()
    assert "n:=" in snippets(job, {"n": "12"}, "")[1].text
