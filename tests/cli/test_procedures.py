"""The procedures of docs/operations.md, as an operator types them."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from build import a_session, claim, completed
from rota._core.task_spec import TaskSpec
from rota.cli import exits


@pytest.mark.req("L33", "L34")
def test_what_nobody_has_acknowledged_is_listed_newest_first_and_who_does_it_is_kept(rota, jobs):
    first, second, third = (jobs.dead(message=word) for word in ("one", "two", "three"))
    assert [line.split("\t")[0] for line in rota("dlq").lines] == [str(third), str(second), str(first)]
    rota("dlq", "ack", second, "--reason", "ticket 12")

    assert [line.split("\t")[0] for line in rota("dlq").lines] == [str(third), str(first)]
    shown = json.loads(rota("dlq", "show", second, "--json").out)
    assert (shown["review"], shown["reviewed_by"], shown["notes"]) == (
        "acknowledged",
        "ann@office",
        "ticket 12",
    )
    assert shown["reviewed_at"] is not None
    [row] = json.loads(rota("audit", "list", "--job", second, "--json").out)
    assert (row["actor"], row["action"], row["reason"]) == ("ann@office", "job_dlq_acknowledged", "ticket 12")


@pytest.mark.req("L35")
def test_a_dead_job_is_queued_again_with_its_correlation(rota, jobs):
    jobs.publish(TaskSpec("greet"))
    own, given = jobs.dead(), jobs.dead(correlation_id="order-7")
    made = [json.loads(rota("dlq", "reprocess", one, "--json").out)[0]["job"] for one in (own, given)]

    new = [jobs.get(UUID(one)) for one in made]
    assert [(job.state.value, job.attempt, job.correlation) for job in new] == [
        ("pending", 0, str(own)),
        ("pending", 0, "order-7"),
    ]


def test_some_tasks_are_drained_while_others_go_on(rota, jobs):
    """Set aside what waits, wait until nothing of it runs, bring it back."""
    running = jobs.run("report")
    waiting = jobs.add("report", times=3)
    jobs.add("mail")
    rota("jobs", "hold", "--task", "report", "--state", "pending", "--yes", "--reason", "maintenance")

    async def next_claim(store) -> set[str]:
        return {job.task for job in await claim(store, await a_session(store))}

    assert jobs.do(next_claim) == {"mail"}
    assert rota("jobs", "list", "--task", "report", "--state", "running").code == exits.DONE
    jobs.do(lambda store: store.settle([completed(running)]))
    assert rota("jobs", "list", "--task", "report", "--state", "running").code == exits.NOTHING
    rota("jobs", "release", "--task", "report", "--yes")
    assert {jobs.get(one).state.value for one in waiting} == {"pending"}


@pytest.mark.req("L39")
def test_a_stuck_job_is_put_back_to_waiting_and_its_worker_can_change_nothing_any_more(rota, jobs):
    stuck = jobs.run("report")
    said = rota("jobs", "fail", stuck.id, "--reason", "stuck", "--yes")

    assert said.code == exits.DONE
    assert jobs.get(stuck.id).state.value == "pending"
    [late] = jobs.do(lambda store: store.settle([completed(stuck)]))
    assert late.answer == "fenced"


@pytest.mark.req("L40")
def test_a_red_night_is_explained_from_the_picture_to_the_remedy(rota, jobs):
    """`rota top` names the task, `rota failures` its cause, `rota jobs why` what keeps a job."""
    for _ in range(3):
        jobs.dead("charge", "payments.example refused")
    lonely = jobs.add("old_import")
    jobs.do(lambda store: a_session(store, lease=600))

    picture = json.loads(rota("top", "--json").out)
    [alert] = [one for one in picture["alerts"] if one["about"] == "task:old_import"]
    assert alert["what"] == "task old_import: 1 job waits, and no living worker knows it"
    [group] = [line.split("\t") for line in rota("failures").lines]
    assert (group[1], group[3], group[4]) == ("3", "charge", "ValueError: payments.example refused")
    assert f"rota failures retry {group[0]}" in rota("failures", "show", group[0]).err
    why = json.loads(rota("jobs", "why", lonely, "--json").out)
    assert why["cause"] == "task_unknown"
