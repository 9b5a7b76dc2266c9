"""`rota dlq` and `rota failures`: what an operator types at night."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from uuid import UUID

import pytest

from build import completed, new_id
from rota._core.actions import Verb
from rota._core.dead_letter import DeadFilter
from rota._core.operation import OperationState
from rota._core.review import Review, ReviewVerb
from rota._core.task_spec import TaskSpec
from rota.admin import Admin

SCHEMA = {
    "properties": {"name": {"type": "string"}, "times": {"type": "integer"}},
    "additionalProperties": False,
}


@pytest.fixture
def known(jobs):
    """A store whose workers know `greet` and `export`."""
    jobs.publish(TaskSpec("greet", schema_json=json.dumps(SCHEMA)), TaskSpec("export"))
    return jobs


def letter(jobs, job_id):
    return jobs.do(lambda store: store.dead_letter(job_id))


def trail(jobs, job_id) -> list[str]:
    return [row.action for row in jobs.do(lambda store: store.audit(job_id))]


@pytest.mark.req("L33")
def test_dead_letters_are_listed_newest_first_with_their_group(rota, known):
    first, second = known.dead(payload={"name": "Ann"}), known.dead("export", message="disk full")
    said = rota("dlq", "list")

    rows = [line.split("\t") for line in said.lines]
    assert [row[:3] for row in rows] == [
        [str(second), "pending_review", "export"],
        [str(first), "pending_review", "greet"],
    ]
    assert rows[0][4] == "ValueError: disk full"
    group = rows[0][3]
    assert len(group) == 12
    assert [line.split("\t")[0] for line in rota("dlq", "list", "--group", group).lines] == [str(second)]


def test_closed_reviews_are_listed_when_asked_for(rota, known):
    job_id = known.dead()
    rota("dlq", "discard", job_id, "--reason", "test data", "--yes")

    said = rota("dlq", "list")
    assert (said.code, said.err) == (4, "No dead letter matches.\n")
    [row] = json.loads(rota("dlq", "list", "--all", "--json").out)
    assert (row["review"], row["reviewed_by"], row["notes"]) == ("discarded", "ann@office", "test data")
    assert rota("dlq", "list", "--review", "discarded", "--since", "1h").code == 0
    assert rota("dlq", "list", "--review", "discarded", "--until", "1h").code == 4


def test_the_next_page_is_named(rota, known):
    ids = [known.dead() for _ in range(3)]
    said = rota("dlq", "list", "-n", "2")

    assert f"the next page: --before {ids[1]}" in said.err
    assert rota("dlq", "list", "--before", ids[1]).lines[0].startswith(str(ids[0]))


def test_one_dead_letter_is_shown_with_what_can_be_done(rota, known):
    job_id = known.dead(payload={"name": "Ann"}, correlation_id="c-1")
    said = rota("dlq", "show", job_id)

    parts = dict(line.split("\t") for line in said.lines)
    assert (parts["review"], parts["error"], parts["correlation"]) == (
        "pending_review",
        "no such address",
        "c-1",
    )
    assert parts["payload"] == '{"name": "Ann"}'
    assert f"`rota dlq reprocess {job_id}` does its work again" in said.err
    record = json.loads(rota("dlq", "show", job_id, "--json").out)
    assert (record["payload"], len(record["attempts"]), record["new_job"]) == ({"name": "Ann"}, 1, None)


def test_secrets_are_hidden_unless_asked_for(rota, known):
    job_id = known.dead(payload={"password": "hunter2hunter2"})

    said = rota("dlq", "show", job_id)
    assert "hunter2" not in said.out
    assert "--reveal shows it" in said.err
    assert "hunter2" in rota("dlq", "show", job_id, "--reveal").out
    assert "hunter2" not in rota("dlq", "list", "--json").out


def test_a_later_success_is_told(rota, known):
    job_id = known.dead(subject="site:1")
    job = known.run(subject="site:1")
    known.do(lambda store: store.settle([completed(job)]))

    assert f"superseded: {job.id} succeeded later" in rota("dlq", "list").out
    assert f"Job {job.id} did the same work later and completed" in rota("dlq", "show", job_id).err


@pytest.mark.req("L34")
def test_dead_letters_are_acknowledged_by_id(rota, known):
    one, two = known.dead(), known.dead()
    said = rota("dlq", "ack", one, two, "--reason", "ticket 12")

    assert said.code == 0
    assert said.err == f"{one} is acknowledged.\n{two} is acknowledged.\n"
    assert said.lines[0].split("\t") == [str(one), "acknowledge", "pending_review", "acknowledged", ""]
    again = rota("dlq", "ack", one, "--reason", "ticket 12")
    assert (again.code, "it is acknowledged. Reprocess or discard it instead." in again.err) == (1, True)
    assert trail(known, one) == ["job_dlq_acknowledged"]


def test_a_review_is_closed_with_a_reason_or_not_at_all(rota, known):
    job_id = known.dead()

    assert "--reason" in rota("dlq", "discard", job_id, "--yes").err
    assert "add --yes to do it" in rota("dlq", "discard", job_id, "--reason", "x").err
    assert letter(known, job_id).review == "pending_review"


def test_what_is_not_there_or_not_dead_is_told(rota, known):
    waiting = known.add()

    said = rota("dlq", "ack", waiting, "--reason", "x")
    assert (said.code, f"cannot review job {waiting}: it is pending." in said.err) == (1, True)
    assert rota("dlq", "show", new_id()).code == 4
    assert "say which dead letter to acknowledge" in rota("dlq", "ack", "--reason", "x").err
    assert "ids or a filter, not both" in rota("dlq", "ack", waiting, "--task", "greet", "--reason", "x").err


@pytest.mark.req("W33", "W34")
def test_a_dead_letter_is_reprocessed_with_an_edited_argument(rota, known):
    job_id = known.dead(payload={"name": "Ann", "times": 1})
    said = rota("dlq", "reprocess", job_id, "--edit", "times=3", "--reason", "typing error", "--json")
    [record] = json.loads(said.out)

    new = known.get(UUID(record["job"]))
    assert (new.payload, str(new.parent_id)) == ({"name": "Ann", "times": 3}, str(job_id))
    assert f"{job_id} is reprocessed as job {new.id} in queue 'default'." in said.err
    assert trail(known, job_id) == ["job_dlq_reprocess_success", "job_dlq_reprocess_requested"]
    again = rota("dlq", "reprocess", job_id)
    assert f"{job_id} is being reprocessed already, as job {new.id}." in again.err
    assert "new job is\tpending" in rota("dlq", "show", job_id).out


def test_a_wrong_edit_and_an_unknown_task_change_nothing(rota, known):
    job_id, gone = known.dead(), known.dead("gone")

    said = rota("dlq", "reprocess", job_id, "--edit", "tims=3")
    assert (said.code, "greet has no argument 'tims'. Did you mean 'times'?" in said.err) == (2, True)
    assert "no task named 'gone'" in rota("dlq", "reprocess", gone).err
    assert "--edit works on one id" in rota("dlq", "reprocess", job_id, gone, "--edit", "times=1").err
    assert "--rate works with a filter" in rota("dlq", "reprocess", job_id, "--rate", "1/s").err
    assert rota("dlq", "reprocess", job_id, "--dry-run").err.startswith(
        f"Would reprocess {job_id}: pending_review ->"
    )
    assert [letter(known, one).review for one in (job_id, gone)] == ["pending_review"] * 2


def test_a_group_is_previewed_and_then_reprocessed_as_an_operation(rota, known):
    ids = [known.dead() for _ in range(3)]
    [line] = rota("failures", "list").lines
    group = line.split("\t")[0]
    preview = rota("dlq", "reprocess", "--group", group, "--dry-run")
    assert preview.err == "Would reprocess 3 dead letters; the newest of them:\n"
    assert len(preview.lines) == 3

    said = rota("dlq", "reprocess", "--group", group, "--rate", "1000/s", "--yes", "--reason", "fixed")
    assert said.code == 0
    assert "reprocess: 3 dead letters of 3 done." in said.err
    assert {letter(known, one).review for one in ids} == {"reprocessing"}
    [record] = json.loads(rota("dlq", "operations", "list", "--json").out)
    assert (record["state"], record["done"], record["total"], record["reason"]) == ("finished", 3, 3, "fixed")
    assert record["wanted"]["group"] == group
    assert rota("failures", "list").code == 4


def test_a_group_is_retried_acknowledged_or_discarded_by_the_beginning_of_its_name(rota, known):
    ids = [known.dead() for _ in range(2)]
    group = letter(known, ids[0]).fingerprint
    preview = rota("failures", "retry", group[:6], "--dry-run")
    assert preview.err == "Would reprocess 2 dead letters; the newest of them:\n"
    assert rota("failures", "ack", group[:6]).code == 2, "a reason is needed"

    assert rota("failures", "retry", group[:6], "--reason", "fixed", "--yes").code == 0
    assert {letter(known, one).review for one in ids} == {"reprocessing"}
    for verb, review in (("ack", "acknowledged"), ("discard", "discarded")):
        job_id = known.dead()
        assert rota("failures", verb, group, "--reason", "known", "--yes").code == 0
        assert letter(known, job_id).review == review
    assert rota("failures", "retry", "nonsense", "--yes").code == 4


def test_an_empty_beginning_fits_every_group_so_they_are_named(rota, known):
    letters = [letter(known, job_id) for job_id in (known.dead(), known.dead("export", message="disk full"))]
    said = rota("failures", "show", "")

    assert said.code == 4
    assert all(repr(one.fingerprint) in said.err for one in letters)


def test_what_is_refused_in_bulk_is_told_by_the_exit_code(rota, known):
    known.dead("gone")
    said = rota("dlq", "reprocess", "--all", "--yes")

    assert said.code == 1
    assert "1 refused" in said.err
    assert rota("dlq", "reprocess", "--task", "nothing", "--yes").code == 4
    assert (
        "cannot reprocess what is resolved" in rota("dlq", "reprocess", "--review", "resolved", "--yes").err
    )
    assert "10/s, 100/min" in rota("dlq", "reprocess", "--all", "--rate", "fast").err


def test_an_operation_is_stopped_and_resumed(rota, known, process):
    """Interrupted as by Ctrl-C in the middle; what is left is done later."""
    ids = [known.dead() for _ in range(4)]
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "rota.cli",
            "dlq",
            "ack",
            "--all",
            "--reason",
            "known",
            "--rate",
            "20/min",
            "--yes",
        ],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not any(one.progress.done for one in known.do(lambda store: store.operations())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)

    assert running.returncode == 130, err
    assert b"goes on with what is left" in err
    [operation] = known.do(lambda store: store.operations())
    assert operation.state is OperationState.STOPPED
    assert rota("dlq", "operations", "stop", operation.id).code == 1
    left = known.do(lambda store: store.dead_letters(DeadFilter((Review.PENDING,))))
    assert 0 < len(left) < len(ids)
    known.do(lambda store: _unpaced(store))
    said = rota("dlq", "operations", "resume", operation.id, "--yes")
    assert said.code == 0, said.err
    assert "acknowledge: 4 dead letters of 4 done." in said.err
    assert rota("dlq", "operations", "resume", operation.id, "--yes").code == 1
    assert rota("dlq", "operations", "stop", new_id()).code == 4


async def _unpaced(store) -> None:
    async with store._desks().connections.connection() as connection:
        await connection.execute("UPDATE rota.operations SET rate = NULL")


def test_an_operation_that_nobody_drives_is_pointed_out(rota, known):
    known.dead()

    async def begun(store):
        operation = await Admin(store, actor="ann").begin_operation(ReviewVerb.DISCARD, DeadFilter())
        async with store._desks().connections.connection() as connection:
            await connection.execute("UPDATE rota.operations SET updated_at = now() - interval '1 hour'")
        return operation.id

    operation_id = known.do(begun)
    said = rota("dlq", "operations", "list")
    assert f"`rota operations resume {operation_id}` goes on with it" in said.err
    said = rota("dlq", "operations", "stop", operation_id, "--reason", "enough")
    assert (said.code, said.err.startswith("Stopped. discard: 0 dead letters of 1 done.")) == (0, True)


def test_an_operation_on_jobs_is_listed_and_resumed_too(rota, known):
    known.dead()

    async def begun(store):
        admin = Admin(store, actor="ann")
        operation = await admin.begin_job_operation(Verb.RETRY, "state:dead")
        return (await admin.stop_operation(operation.id)).id

    operation_id = known.do(begun)
    assert "retry 1 job (state:dead)" in rota("operations", "list").out
    [record] = json.loads(rota("operations", "list", "--json").out)
    assert (record["verb"], record["wanted"]["filter"], record["capped"]) == ("retry", "state:dead", False)
    said = rota("operations", "resume", operation_id, "--yes")
    assert (said.code, "retry: 1 job of 1 done." in said.err) == (0, True), said.err


def test_there_may_be_no_operation(rota, jobs):
    assert rota("dlq", "operations", "list").code == 4


@pytest.mark.req("L29")
def test_failures_are_listed_by_group_with_count_trend_and_latest_time(rota, known):
    known.dead(message="order 1")
    last = known.dead(message="order 2")
    known.dead("export")
    groups = json.loads(rota("failures", "list", "--json").out)

    assert [(group["task"], group["letters"], group["trend"]) for group in groups] == [
        ("export", 1, "new"),
        ("greet", 2, "new"),
    ]
    assert groups[1]["example"] == str(last)
    assert [line.split("\t")[3] for line in rota("failures", "list", "--task", "greet").lines] == ["greet"]


def test_a_group_is_shown_with_an_example_and_its_stack(rota, known):
    job_id = known.dead()
    group = letter(known, job_id).fingerprint
    said = rota("failures", "show", group)

    parts = dict(line.split("\t") for line in said.lines if "\t" in line)
    assert (parts["task"], parts["dead letters"], parts["example"]) == ("greet", "1", str(job_id))
    assert f"`rota failures retry {group}`" in said.err
    assert rota("failures", "show", group[:5]).out == said.out
    record = json.loads(rota("failures", "show", group, "--json").out)
    assert (record["stack"], record["newest"][0]["id"]) == ("Traceback: boom", str(job_id))
    unknown = rota("failures", "show", "nonsense")
    assert (unknown.code, "`rota failures list` shows the groups" in unknown.err) == (4, True)


def test_failures_and_dead_letters_are_listed_without_a_verb(rota, known):
    known.dead(message="disk full")

    assert rota("failures").out == rota("failures", "list").out != ""
    assert json.loads(rota("failures", "--json").out)[0]["letters"] == 1
    assert rota("dlq").out == rota("dlq", "list").out != ""
    assert "Commands:" in rota("failures", "--help").out
