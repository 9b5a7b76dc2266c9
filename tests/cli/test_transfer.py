"""`rota export` and `rota import`: jobs from one store into another."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest

from build import failed, new_id
from rota._core.job import Scope, State
from rota._core.job_filter import JobFilter
from rota.admin import transfers
from rota.cli import exits, transfer

LATER = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def other(bare, rota, jobs):
    """Another database, with the schema."""
    rota("migrate", "--url", bare)
    return type(jobs)(bare)


@pytest.fixture
def moved(rota, jobs, other, tmp_path):
    """Export everything from one database, and import it into the other; what the import said."""

    def move(*more: str):
        path = tmp_path / f"{new_id()}.jsonl"
        exported = rota("export", "--reveal", "-o", path)
        assert exported.code == 0, exported.err
        return rota("import", path, "--url", other.url, *more)

    return move


def test_a_job_that_waits_comes_as_it_was(jobs, other, moved):
    parent = new_id()
    job_id = jobs.add(
        "send_email",
        payload={"to": "ann", "big": 2**70, "text": "Grüße\n日本"},
        queue="mail",
        priority=7,
        max_attempts=9,
        run_at=LATER,
        timeout=30.0,
        tenant="acme",
        subject="site:1",
        key="order-1",
        gate="serial:acme:7",
        correlation_id="c-1",
        parent_id=parent,
        tags=("a", "b"),
        created_by="shop",
        category=None,
        external_id="x-1",
    )
    said = moved()

    assert (said.code, said.out) == (0, "1\t0\t0\t0\n")
    was, now = jobs.get(job_id), other.get(job_id)
    times = ("created_at", "updated_at", "version")
    assert {**now._asdict(), **dict.fromkeys(times)} == {**was._asdict(), **dict.fromkeys(times)}


def test_held_stays_held_and_a_unique_key_keeps_others_out_there_too(jobs, other, moved):
    held = jobs.add(held=True)
    unique = jobs.add(unique_key="u", unique_scope=Scope.FINISHED)
    moved()

    assert other.get(held).state is State.HELD
    assert (other.get(unique).unique_key, other.get(unique).unique_scope) == ("u", "finished")


def test_a_job_has_the_attempts_that_it_had_left(jobs, other, moved):
    job = jobs.run(max_attempts=5)
    jobs.do(lambda store: store.settle([failed(job)]))
    moved()

    assert jobs.get(job.id).attempt == 1
    assert (other.get(job.id).attempt, other.get(job.id).max_attempts) == (0, 4)


def test_what_runs_or_has_ended_stays_where_it_is_and_is_counted(jobs, other, moved):
    dead = jobs.dead()
    jobs.run()
    waits = jobs.add()
    said = moved("--json")

    told = json.loads(said.out)
    assert said.code == 0
    assert (told["imported"], told["wrong"]) == (1, 0)
    assert sorted(why.partition(":")[0] for why in told["stays"]) == ["dead", "running"]
    assert "Not imported: 1 dead: retry or reprocess them where they died" in said.err
    assert other.get(waits).state is State.PENDING
    assert other.do(lambda store: store.get([dead])) == []


def test_a_job_past_its_deadline_is_not_brought_back(rota, jobs, other, tmp_path):
    jobs.add(deadline_in=3600.0)
    rota("export", "--reveal", "-o", tmp_path / "jobs.jsonl")
    line = json.loads((tmp_path / "jobs.jsonl").read_text())
    line["deadline"] = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    said = rota("import", "-", "--url", other.url, stdin=json.dumps(line))

    assert "Not imported: 1 past their deadline" in said.err


def test_an_import_is_run_again_after_an_interruption(jobs, other, moved):
    jobs.add(times=3)
    moved()
    again = moved()

    assert (again.code, again.out) == (0, "0\t3\t0\t0\n")
    assert "Imported 0 jobs; 3 already there." in again.err


def test_what_is_there_is_never_changed(rota, jobs, other, moved):
    job_id = jobs.add()
    moved()
    rota("jobs", "edit", job_id, "--priority", "1", "--url", other.url)
    moved()

    assert other.get(job_id).priority == 1


def test_many_jobs_go_page_by_page_and_each_comes_once(rota, jobs, other, moved, monkeypatch):
    monkeypatch.setattr(transfers, "PAGE", 3)
    monkeypatch.setattr(transfers, "BATCH", 4)
    ids = jobs.add(times=11)
    said = moved()

    assert said.out == "11\t0\t0\t0\n"
    assert {job.id for job in other.do(lambda store: store.get(ids))} == set(ids)


def test_a_filter_says_which_jobs_are_exported(rota, jobs):
    mail = jobs.add(queue="mail")
    jobs.add()
    said = rota("export", "queue:mail")

    assert [json.loads(line)["id"] for line in said.lines] == [str(mail)]
    assert "1 job exported." in said.err
    assert rota("export", "queue:nobody").code == exits.NOTHING


def test_numbers_leave_as_they_are_stored(rota, jobs):
    jobs.add()
    with psycopg.connect(jobs.url, autocommit=True) as connection:
        connection.execute(
            """UPDATE rota.jobs SET payload = '{"n": 1.10, "big": 123456789012345678901234567890}'"""
        )
    said = rota("export")

    assert '"n": 1.10' in said.out
    assert "123456789012345678901234567890" in said.out


def test_failed_attempts_are_in_the_export(rota, jobs):
    jobs.dead(message="no such address")
    [line] = rota("export", "state:dead").lines

    [attempt] = json.loads(line)["attempts"]
    assert (attempt["message"], json.loads(line)["state"]) == ("no such address", "dead")


def test_secrets_are_hidden_and_such_a_line_is_not_imported(rota, jobs, other):
    jobs.add(payload={"password": "hunter2"})
    said = rota("export")
    back = rota("import", "-", "--url", other.url, stdin=said.out)

    assert "hunter2" not in said.out
    assert "--reveal writes it" in said.err
    assert back.code == exits.PROBLEMS
    assert "line 1: its secrets are hidden (***), and it would run without them." in back.err
    assert rota("audit", "list", "--action", "export_revealed").code == exits.NOTHING


def test_revealing_is_in_the_audit_with_the_filter_and_the_reason(rota, jobs):
    jobs.add(payload={"password": "hunter2"})
    said = rota("export", "queue:default", "--reveal", "--reason", "we move")
    [told] = json.loads(rota("audit", "list", "--action", "export_revealed", "--json").out)

    assert "hunter2" in said.out
    assert (told["actor"], told["after"], told["reason"]) == ("ann@office", "queue:default", "we move")


def test_an_import_is_in_the_audit_and_a_dry_run_is_not(rota, jobs, other, moved):
    job_id = jobs.add()
    dry = moved("--dry-run")
    nothing = rota("audit", "list", "--action", "import", "--url", other.url)
    absent = other.do(lambda store: store.get([job_id]))
    moved("--reason", "we move")
    [told] = json.loads(rota("audit", "list", "--action", "import", "--json", "--url", other.url).out)

    assert "Would import 1 job; 0 already there." in dry.err
    assert (nothing.code, absent) == (exits.NOTHING, [])
    assert (told["actor"], told["reason"]) == ("ann@office", "we move")


def test_everything_can_be_brought_in_as_held(jobs, other, moved):
    job_id = jobs.add()
    moved("--hold")

    assert other.get(job_id).state is State.HELD


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (None, "it is not JSON"),
        ({"format": "else"}, 'it has no "format": "rota.job/1", so it is no job'),
        ({"id": "12"}, "id '12' is not a job's id, which is a UUID"),
        ({"id": "faa2c1cf-eb2d-4cb3-899a-e45c904c18ef"}, "is none that Rota made"),
        ({"id": "ffffffff-ffff-7000-8000-000000000000"}, "is none that Rota made"),
        ({"state": "waiting"}, "state 'waiting' is none of pending, blocked, held"),
        ({"task": ""}, "task must not be empty"),
        ({"task": 7}, "task must be a text, not 7"),
        ({"payload": [1]}, "payload [1] is not an object of arguments by name"),
        ({"payload": {"a": "\x00"}}, "contains a NUL character"),
        ({"payload": {"a": float("nan")}}, "NaN or infinite"),
        ({"priority": 99_999}, "99999"),
        ({"max_attempts": 0}, "max_attempts 0 is not a whole number"),
        ({"attempt": "two"}, "attempt 'two' is not a whole number from 0"),
        ({"run_at": "soon"}, "run_at 'soon' is not a moment with a time zone"),
        ({"run_at": "2026-01-01T00:00:00"}, "is not a moment with a time zone"),
        ({"tags": "a"}, "tags must be a list of texts"),
        ({"headers": 7}, "headers 7 are not an object"),
        ({"headers": {"a": "\x00"}}, "its headers cannot be stored: a contains a NUL character"),
        ({"timeout": "nan"}, "timeout 'nan' is not understood"),
        ({"timeout": -5}, "timeout must be 0 or more"),
        ({"parent_id": 7}, "parent_id 7 is not a text"),
        ({"parent_id": "12"}, "parent_id '12' is not a job's id, which is a UUID"),
        (
            {"unique_key": "u", "unique_scope": "ever"},
            "unique_scope 'ever' is none of started, finished, window",
        ),
    ],
)
def test_a_wrong_line_is_named_with_its_value_and_the_others_come(rota, jobs, other, change, said):
    jobs.add(times=2)
    first, second = rota("export", "--reveal").lines
    wrong = "{oops" if change is None else json.dumps(json.loads(first) | change)
    answer = rota("import", "-", "--url", other.url, stdin=f"{wrong}\n{second}\n")

    assert (answer.code, answer.out) == (exits.PROBLEMS, "1\t0\t0\t1\n")
    assert "line 1: " in answer.err
    assert said in answer.err


def test_a_line_without_a_field_says_which(rota, jobs, other):
    jobs.add()
    line = json.loads(rota("export").out)
    del line["queue"]

    assert "line 1: it has no 'queue'." in rota("import", "-", "--url", other.url, stdin=json.dumps(line)).err


def test_a_job_that_was_deleted_here_does_not_come_back_and_is_not_said_to(rota, jobs, other, moved):
    long_ago = UUID(int=new_id().int - (3_600_000 << 80))
    jobs.add(id=long_ago)
    moved()
    rota("jobs", "delete", long_ago, "--yes", "--url", other.url)
    said = moved("--json")

    told = json.loads(said.out)
    assert (said.code, told["imported"], told["already"]) == (exits.NOTHING, 0, 0)
    assert "Not imported: 1 deleted here by somebody" in said.err
    assert other.do(lambda store: store.get([long_ago])) == []


def test_a_payload_as_large_as_the_settings_allow_comes(jobs, other, moved, monkeypatch):
    big = jobs.add(payload={"text": "x" * 300_000})
    refused = moved()
    monkeypatch.setenv("ROTA_PAYLOAD_LIMIT", "1000000")
    taken = moved()

    assert "the limit is 262,144" in refused.err
    assert (taken.code, taken.out) == (0, "1\t0\t0\t0\n")
    assert other.get(big).payload == jobs.get(big).payload


def test_empty_lines_are_nothing(rota, jobs, other):
    jobs.add()
    line = rota("export").out
    said = rota("import", "-", "--url", other.url, stdin=f"\n{line}\n \n")

    assert (said.code, said.out) == (0, "1\t0\t0\t0\n")


def test_a_key_that_another_job_has_is_refused_and_the_others_come(jobs, other, moved):
    jobs.add(key="order-1")
    jobs.add()
    holder = other.add(key="order-1")
    said = moved()

    assert (said.code, said.out) == (exits.PROBLEMS, "1\t0\t0\t1\n")
    assert f"another job here, {holder}, has its key 'order-1'" in said.err


def test_a_thousand_wrong_lines_are_counted_and_twenty_are_named(rota, jobs):
    said = rota("import", "-", stdin="no\n" * 1000)

    assert said.err.count("it is not JSON") == 20
    assert "980 more lines that are wrong" in said.err


def test_one_command_feeds_the_other_through_a_pipe(jobs, other):
    jobs.add(times=5)
    command = [sys.executable, "-m", "rota.cli"]
    out = subprocess.Popen([*command, "export", "--reveal"], stdout=subprocess.PIPE)
    came = subprocess.run(
        [*command, "import", "-", "--url", other.url],
        stdin=out.stdout,
        capture_output=True,
        text=True,
        check=True,
    )
    out.stdout.close()

    assert out.wait(60) == 0
    assert came.stdout == "5\t0\t0\t0\n"


def test_ctrl_c_ends_an_import_that_waits_for_its_next_line(rota, jobs, other):
    jobs.add(times=transfers.BATCH)
    lines = rota("export").out
    waiting = subprocess.Popen(
        [sys.executable, "-m", "rota.cli", "import", "-", "--url", other.url],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    waiting.stdin.write(lines)
    waiting.stdin.flush()
    while len(other.do(lambda store: store.find(JobFilter(limit=transfers.BATCH)))) < transfers.BATCH:
        assert waiting.poll() is None
    waiting.send_signal(signal.SIGINT)
    returned = waiting.wait(60)  # its stdin is open all the while
    waiting.communicate()

    assert returned == exits.INTERRUPTED


async def test_ctrl_c_while_a_batch_is_written_ends_the_import_before_it_waits_for_the_next():
    asyncio.current_task().cancel()  # what the event loop does with the signal
    with pytest.raises(KeyboardInterrupt):
        transfer._batch(iter(["a line"]), 1)

    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)


def test_a_file_in_which_everything_has_ended_is_nothing(rota, jobs, other, moved):
    jobs.dead()

    assert moved().code == exits.NOTHING
