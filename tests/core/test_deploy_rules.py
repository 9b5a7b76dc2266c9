"""What a deploy would meet, decided from values: the code's registry beside what the store holds."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from rota._core.deploy import Known, Level, Release, Waiting, WaitingJob, compare, worst
from rota._core.schedule import Edits, ScheduleRecord, ScheduleSpec
from rota._core.task_spec import TaskSpec

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
NIGHTLY = ScheduleSpec("nightly", "report", '{"queue": "slow"}', "cron 0 2 * * *")


def release(*tasks: TaskSpec, schedules=(), refuse: str | None = None, **fields) -> Release:
    return Release({task.name: task for task in tasks}, schedules, lambda _task, _payload: refuse, **fields)


def stored(spec: ScheduleSpec = NIGHTLY, **fields) -> ScheduleRecord:
    return ScheduleRecord(spec, 1, NOW, NOW, NOW, **fields)


def told(found, kind: str) -> list[tuple[str, str]]:
    return [
        (finding.level.value, f"{finding.subject} {finding.what}")
        for finding in found
        if finding.kind == kind
    ]


def test_nothing_to_say_is_ready():
    found = compare(release(TaskSpec("mail")), Known(tasks=[TaskSpec("mail")]))

    assert worst(found) is Level.OK
    assert told(found, "migration") == [("ok", "schema is up to date")]


def test_a_pending_migration_is_a_problem():
    found = compare(release(), Known(pending_migrations=["0009_next"]))

    assert told(found, "migration") == [("bad", "0009_next is pending in this database")]
    assert "rota migrate" in found[0].fix


def test_a_task_that_is_gone_is_a_problem_only_while_jobs_of_it_wait():
    known = Known(
        tasks=[TaskSpec("mail"), TaskSpec("fax")],
        waiting=[Waiting("fax", "1.0", 3), Waiting("fax", "2.0", 4)],
    )
    found = compare(release(TaskSpec("mail")), known)

    assert told(found, "task") == [("bad", "fax is not in this code, and 7 jobs of it wait")]
    assert "rota jobs cancel --task fax" in found[0].fix
    idle = compare(release(TaskSpec("mail")), known._replace(waiting=[]))
    assert told(idle, "task") == [("ok", "fax is not in this code, and no job of it waits")]


def test_a_job_of_a_task_that_nobody_ever_published_is_found_too():
    found = compare(release(), Known(waiting=[Waiting("typo", None, 1)]))

    assert told(found, "task") == [("bad", "typo is not in this code, and 1 job of it waits")]


def test_payloads_are_tried_by_the_tasks_own_reader():
    jobs = tuple(WaitingJob(UUID(int=number), "{}") for number in range(5))
    known = Known(tasks=[TaskSpec("mail")], waiting=[Waiting("mail", "1.0", 9000, jobs)])
    found = compare(release(TaskSpec("mail"), refuse="to: field required"), known)

    [(level, what)] = told(found, "payload")
    assert level == "bad"
    assert what.startswith(
        "mail cannot read 5 of 5 waiting payloads of version 1.0 that were tried (9,000 wait): to: field required"
    )
    assert what.count("00000000-") == 3  # a few examples
    fine = compare(release(TaskSpec("mail")), known)
    assert told(fine, "payload") == [("ok", "payloads 5 waiting payloads tried; this code reads them")]


def test_payloads_that_could_not_be_tried_are_unknown_and_not_fine():
    found = compare(release(TaskSpec("mail")), Known(waiting=[Waiting("mail", None, 1)]))

    assert told(found, "payload") == [("bad", "mail unknown: 1 payload wait and none could be tried")]


def test_what_could_not_be_read_is_unknown_and_not_fine():
    found = compare(release(), Known(["0009_next"], None, None, None, why_not="the schema is too old"))

    assert worst(found) is Level.BAD
    assert told(found, "task") == [("bad", "waiting jobs unknown: the schema is too old")]
    assert told(found, "schedule") == [("bad", "schedules unknown: the schema is too old")]


def test_schedules_that_change_stop_or_begin_are_said():
    changed = NIGHTLY._replace(timing="cron 0 3 * * *", template_json='{"queue": "fast"}')
    new = NIGHTLY._replace(name="weekly")
    known = Known(schedules=[stored(), stored(NIGHTLY._replace(name="hourly"))])
    found = compare(release(schedules=[changed, new]), known)

    assert told(found, "schedule") == [
        ("warn", "hourly is not in this code: it stops ticking when the old workers are gone"),
        ("warn", "nightly changes timing from cron 0 2 * * * to cron 0 3 * * *, the job that it makes"),
        ("ok", "weekly is new (cron 0 2 * * *, UTC)"),
    ]


def test_the_same_schedule_in_another_spelling_of_json_has_not_changed():
    same = NIGHTLY._replace(template_json='{ "queue":"slow" }')

    assert told(compare(release(schedules=[same]), Known(schedules=[stored()])), "schedule") == []


def test_what_an_operator_set_stays_and_is_said():
    changed = NIGHTLY._replace(timing="cron 0 3 * * *")
    found = compare(
        release(schedules=[changed]), Known(schedules=[stored(edits=Edits(timing="cron 0 4 * * *"))])
    )

    [finding] = [finding for finding in found if finding.kind == "schedule"]
    assert finding.what.endswith("; an operator set its timing, which stays")
    assert "rota schedules reset nightly" in finding.fix


def test_a_task_that_moves_to_another_queue_leaves_its_waiting_jobs_behind():
    known = Known(
        tasks=[TaskSpec("mail", "old")], waiting=[Waiting("mail", None, 2, (WaitingJob(UUID(int=1), "{}"),))]
    )
    found = compare(release(TaskSpec("mail", "new")), known)

    assert told(found, "task") == [
        ("warn", "mail moves from queue 'old' to 'new'; jobs that wait already stay in 'old'")
    ]


def test_the_worst_comes_first():
    found = compare(release(TaskSpec("new")), Known(["0009_next"], schedules=[stored()]))

    assert [finding.level for finding in found] == [Level.BAD, Level.WARN, Level.OK]
