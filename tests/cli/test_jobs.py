"""`rota jobs list` and `show`: for scripts in a pipe, for people on a terminal, as JSON."""

from __future__ import annotations

import json
import sys
from uuid import UUID

import pexpect
import pytest

from rota._core.ids import public_id
from rota.admin import Admin

NOBODY = UUID(int=1)


def test_a_piped_list_is_tab_separated_with_one_job_a_line(rota, jobs):
    first = jobs.add("greet", queue="mail")
    second = jobs.add("report", delay=3600.0)

    said = rota("jobs", "list")

    rows = [line.split("\t") for line in said.lines]
    assert said.code == 0
    assert [row[:5] for row in rows] == [
        [str(second), "scheduled", "report", "default", "0/5"],
        [str(first), "pending", "greet", "mail", "0/5"],
    ]
    assert said.err == ""


def test_a_list_as_json_has_every_field_with_payload_and_result_as_values(rota, jobs):
    job_id = jobs.add(payload={"name": "Ann"}, tags=("a", "b"), tenant="acme")

    [record] = json.loads(rota("jobs", "list", "--json").out)

    assert record["id"] == str(job_id)
    assert record["public_id"] == public_id(job_id)
    assert (record["payload"], record["result"], record["tags"]) == ({"name": "Ann"}, None, ["a", "b"])
    assert (record["label"], record["tenant"]) == ("pending", "acme")


@pytest.mark.req("L13")
def test_every_filter_narrows_the_list(rota, jobs):
    parent = jobs.add("report", correlation_id="order-7")
    child = jobs.add(
        "greet",
        queue="mail",
        tenant="acme",
        subject="site:12",
        key="k-1",
        external_id="x-9",
        parent_id=parent,
        correlation_id="order-7",
        tags=("red",),
    )
    jobs.add("greet")

    for option in (
        ("--queue", "mail"),
        ("--tenant", "acme"),
        ("--subject", "site:12"),
        ("--key", "k-1"),
        ("--external-id", "x-9"),
        ("--tag", "red"),
        ("--parent", parent, "--correlation", "order-7"),
        ("--task", "greet", "--correlation", "order-7"),
    ):
        said = rota("jobs", "list", *option)
        assert [line.split("\t")[0] for line in said.lines] == [str(child)], option


def test_states_are_listed_together_and_a_wrong_one_is_answered_with_the_right_ones(rota, jobs):
    dead, waiting = jobs.dead(), jobs.add()

    both = rota("jobs", "list", "--state", "dead", "--state", "pending")
    wrong = rota("jobs", "list", "--state", "failed")

    assert {line.split("\t")[0] for line in both.lines} == {str(dead), str(waiting)}
    assert wrong.code == 2
    assert "'pending', 'blocked', 'held', 'running', 'completed', 'partial', 'dead', 'cancelled'" in wrong.err


def test_nothing_matched_is_exit_4(rota, jobs):
    said = rota("jobs", "list", "--task", "nope")

    assert (said.code, said.out, said.err) == (4, "", "No job matches.\n")


def test_nothing_matched_as_json_is_an_empty_list(rota, jobs):
    said = rota("jobs", "list", "--json")

    assert (said.code, json.loads(said.out)) == (4, [])


def test_a_full_page_says_how_to_get_the_next(rota, jobs):
    first, second, third = jobs.add(times=3)

    page = rota("jobs", "list", "--limit", 2)
    rest = rota("jobs", "list", "--limit", 2, "--before", second)

    assert page.err == f"2 jobs shown; the next page: --before {second}\n"
    assert [line.split("\t")[0] for line in page.lines] == [str(third), str(second)]
    assert [line.split("\t")[0] for line in rest.lines] == [str(first)]


@pytest.mark.req("D24")
def test_a_job_is_shown_by_either_form_of_its_id_with_who_created_it(rota, jobs):
    job_id = jobs.add(payload={"name": "Ann"}, created_by="server-api")

    for form in (
        str(job_id),
        str(job_id).upper(),
        public_id(job_id),
        public_id(job_id).lower().replace("-", ""),
    ):
        said = rota("jobs", "show", form)
        fields = dict(line.split("\t") for line in said.lines)
        assert (fields["id"], fields["public id"]) == (str(job_id), public_id(job_id))
        assert (fields["created by"], json.loads(fields["payload"])) == ("server-api", {"name": "Ann"})


def test_a_job_as_json_has_its_attempts_audit_and_children(rota, jobs):
    job_id = jobs.dead(message="no such address")
    child = jobs.add(parent_id=job_id)
    jobs.do(lambda store: Admin(store, actor="bob@office").retry(job_id, reason="fixed"))

    record = json.loads(rota("jobs", "show", job_id, "--json").out)

    assert [(seen["attempt"], seen["message"]) for seen in record["attempts"]] == [(1, "no such address")]
    assert [(done["actor"], done["action"], done["reason"]) for done in record["audit"]] == [
        ("bob@office", "retry", "fixed")
    ]
    assert record["children"] == [str(child)]


def test_in_a_pipe_too_a_job_is_shown_with_its_attempts_and_their_stacks(rota, jobs):
    job_id = jobs.dead(message="no such address")

    shown = rota("jobs", "show", job_id)
    [group] = [line.split("\t")[0] for line in rota("failures", "list").lines]

    assert "\nattempt 1\t" in shown.out
    assert "non_retryable ValueError no such address" in shown.out
    assert shown.out.endswith("Stack of attempt 1\n  Traceback: boom\n")
    assert "Stack of the newest one\n  Traceback: boom\n" in rota("failures", "show", group).out


def test_an_unknown_job_is_exit_4(rota, jobs):
    said = rota("jobs", "show", NOBODY)

    assert said.code == 4
    assert said.err == (
        f"rota: no job has the id {NOBODY}. It may have been removed by retention; "
        "`rota jobs list` shows what is there.\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "12",
            (
                "'12' is not a job id: expected a UUID, or 26 Base32 symbols and a check symbol (got 2 symbols). "
                "`rota jobs list` shows the ids of jobs."
            ),
        ),
        ("01M7-GJT5-VYEY-08BM-Z5P3-B4SW-5YF", "its check symbol does not fit, so a symbol is mistyped."),
    ],
)
def test_a_wrong_id_is_a_usage_error_that_says_what_an_id_is(rota, text, words):
    said = rota("jobs", "show", text)

    assert said.code == 2
    assert words in " ".join(said.err.split())


def test_stored_text_cannot_steer_the_terminal_on_any_face(rota, jobs):
    evil = "\x1b]0;owned\x07\x1b[2Jboo\u202e\x9b31m"
    job_id = jobs.dead(message=evil, payload={"name": evil}, queue=evil)

    for arguments in (("list",), ("show", job_id), ("list", "--json"), ("show", job_id, "--json")):
        said = rota("jobs", *arguments)
        assert said.code == 0
        assert "boo" in said.out
        assert not set("\x1b\x07\x9b\u202e") & set(said.out + said.err)
    assert json.loads(rota("jobs", "show", job_id, "--json").out)["payload"] == {"name": evil}


def on_a_terminal(*arguments: object, columns: int = 120, **env: str) -> str:
    import os

    child = pexpect.spawn(
        sys.executable,
        ["-m", "rota.cli", *map(str, arguments)],
        env={**os.environ, "TERM": "xterm-256color", **env},
        dimensions=(50, columns),
        encoding="utf-8",
        timeout=30,
    )
    child.expect(pexpect.EOF)
    child.close()
    return child.before


def test_on_a_terminal_a_list_is_a_table_with_coloured_states_and_times_as_seen_from_now(jobs):
    job_id = jobs.dead(queue="mail")
    jobs.add("report", delay=7200.0)

    screen = on_a_terminal("jobs", "list")

    assert str(job_id) in screen
    assert "\x1b[1;31mdead" in screen
    assert "attempt" in screen
    assert "in 2h" in screen or "in 1h" in screen
    assert "\t" not in screen


def test_no_color_is_honoured(jobs):
    jobs.dead()

    screen = on_a_terminal("jobs", "list", NO_COLOR="1")

    assert "dead" in screen
    assert "\x1b[1;31m" not in screen
    assert "\x1b[3" not in screen


def test_the_id_is_whole_on_a_narrow_terminal(jobs):
    job_id = jobs.add("a_task_with_quite_a_long_name_that_needs_room")

    assert str(job_id) in on_a_terminal("jobs", "list", columns=80)


def test_on_a_terminal_a_job_is_shown_with_stack_and_history(jobs):
    job_id = jobs.dead(message="no such address", payload={"name": "Ann"})
    jobs.do(lambda store: Admin(store, actor="bob@office").retry(job_id, reason="fixed"))
    again = jobs.dead(payload={"name": "[red]markup[/red]"})

    retried, dead = on_a_terminal("jobs", "show", job_id), on_a_terminal("jobs", "show", again)

    assert "no such address" in retried
    assert "bob@office" in retried
    assert '"name": "Ann"' in retried
    assert "Traceback: boom" in dead
    assert "[red]markup[/red]" in dead
