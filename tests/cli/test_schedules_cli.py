"""`rota schedules` and `rota enqueue --tick`: looked at, acted on, and every action in the audit."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta

import pexpect
import psycopg
import pytest

from rota._core.job import State
from rota._core.schedule import Misfire, ScheduleSpec
from rota._core.task_spec import TaskSpec

NIGHTLY = ScheduleSpec(
    "nightly", "greet", '{"queue": "mail", "payload": {"name": "Ann"}}', "30 2 * * *", "Europe/Berlin"
)
HOURLY = ScheduleSpec("hourly", "greet", '{"payload": {"name": "Bob"}}', "every 1h", misfire=Misfire.SKIP)
GREET = TaskSpec(
    "greet",
    schema_json='{"properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false}',
)


@pytest.fixture
def known(jobs):
    """Two schedules, as a worker would have published them."""
    jobs.publish(GREET)
    jobs.do(lambda store: store.publish_schedules([NIGHTLY, HOURLY]))
    return jobs


def record(jobs, name="nightly"):
    [found] = jobs.do(lambda store: store.roster([name])).schedules
    return found


def trail(jobs, name="nightly"):
    return [
        (row.actor, row.action, row.reason) for row in jobs.do(lambda s: s.audit(about=f"schedule:{name}"))
    ]


def test_schedules_are_listed_with_their_next_tick(rota, known):
    said = rota("schedules", "list")
    rows = [line.split("\t") for line in said.lines]

    assert said.code == 0
    assert [row[:5] for row in rows] == [
        ["hourly", "active", "every 1h", "UTC", "greet"],
        ["nightly", "active", "30 2 * * *", "Europe/Berlin", "greet"],
    ]
    upcoming = datetime.fromisoformat(rows[0][5])
    assert timedelta(0) < upcoming - datetime.now(UTC) <= timedelta(hours=1)
    assert upcoming.minute == 0


def test_where_no_schedule_is_known_it_is_said_where_they_come_from(rota, jobs):
    said = rota("schedules", "list")

    assert (said.code, said.out) == (4, "")
    assert said.err == "No schedule is known. A worker makes those of its code known when it starts.\n"


def test_an_unknown_schedule_is_answered_with_the_nearest(rota, known):
    said = rota("schedules", "show", "nigthly")

    assert said.code == 4
    assert "no schedule is named 'nigthly'; did you mean 'nightly'?" in said.err


def test_one_schedule_is_shown_with_everything(rota, known):
    rota("schedules", "run", "nightly", "--reason", "first")
    rota("schedules", "edit", "nightly", "--tz", "Asia/Tokyo")

    plain = dict(line.split("\t", 1) for line in rota("schedules", "show", "nightly").lines)
    full = json.loads(rota("schedules", "show", "nightly", "--json").out)

    assert plain["in words"] == "At 02:30 every day"
    assert (plain["zone"], plain["edited"], plain["status"]) == ("Asia/Tokyo", "tz=Asia/Tokyo", "active")
    assert (full["code"]["tz"], full["zone"], full["arguments"]) == (
        "Europe/Berlin",
        "Asia/Tokyo",
        {"name": "Ann"},
    )
    assert [(seen["origin"], seen["state"]) for seen in full["ticks"]] == [("run", "pending")]
    assert [done["action"] for done in full["audit"]] == ["edit", "run"]
    assert len(full["upcoming"]) == 5


def test_the_next_ticks_are_shown_in_utc_and_on_the_local_clock_with_changes_of_the_clocks(rota, known):
    rota("schedules", "edit", "nightly", "--window", "0 2 * * * for 1h")

    said = rota("schedules", "next", "nightly", "-n", "370", "--json")
    ticks = json.loads(said.out)

    assert len(ticks) == 370
    notes = [tick["note"] for tick in ticks]
    assert sum("the clocks go forward that day" in note for note in notes) >= 1
    assert sum("the clocks go back that day" in note for note in notes) >= 1
    assert all(
        "in a maintenance window until" in note and "then misfire=last" in note
        for note in notes
        if "forward" not in note
    )
    assert {datetime.fromisoformat(tick["local"]).strftime("%H:%M") for tick in ticks} == {"02:30", "03:00"}


def test_the_next_ticks_of_all_schedules_are_one_list_by_time(rota, known):
    rota("schedules", "pause", "hourly")
    rows = [line.split("\t") for line in rota("schedules", "next", "-n", "2").lines]

    assert sorted(row[0] for row in rows) == ["hourly", "hourly", "nightly", "nightly"]
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)
    assert {row[3] for row in rows if row[0] == "hourly"} == {"paused"}


def test_run_now_enqueues_the_schedules_job_under_the_name_of_who_typed_it(rota, known):
    said = rota("schedules", "run", "nightly", "--reason", "report was wrong")
    job = known.get(_id(said))

    assert said.code == 0
    assert said.err == f"Enqueued the job of nightly as {job.id}.\n"
    assert (job.task, job.payload, job.queue, job.state) == ("greet", {"name": "Ann"}, "mail", State.PENDING)
    assert (job.schedule, job.created_by) == ("nightly", "schedule:nightly")
    assert trail(known) == [("ann@office", "run", "report was wrong")]


def _id(said):
    from uuid import UUID

    return UUID(said.out.split("\t")[0].strip())


@pytest.mark.req("V34")
def test_a_schedule_is_paused_and_resumed(rota, known):
    paused = rota("schedules", "pause", "nightly", "--reason", "we move")
    at_rest = record(known)
    resumed = rota("schedules", "resume", "nightly", "--json")

    assert (paused.code, paused.out) == (0, "nightly\tpaused\n")
    assert paused.err == "nightly rests until `rota schedules resume nightly`.\n"
    assert (at_rest.paused_by, at_rest.paused_because) == ("ann@office", "we move")
    assert json.loads(resumed.out)["status"] == "active"
    assert record(known).cursor > at_rest.cursor, "what passed meanwhile is not made good"
    assert trail(known) == [("ann@office", "resume", None), ("ann@office", "pause", "we move")]


def test_a_name_that_would_steer_the_terminal_does_not(rota, known):
    name = "\x1b]0;owned\x07\x1b[2Jnight\tly"
    known.do(lambda store: store.publish_schedules([NIGHTLY._replace(name=name)]))
    said = rota("schedules", "pause", name)

    assert (said.code, said.out) == (0, "night ly\tpaused\n")
    assert "\x1b" not in said.err


def test_a_schedule_that_cannot_be_read_here_is_listed_and_can_be_paused(rota, known):
    known.do(lambda store: store.publish_schedules([HOURLY._replace(name="far", tz="Mars/Olympus")]))

    rows = {line.split("\t")[0]: line.split("\t") for line in rota("schedules", "list").lines}
    paused = rota("schedules", "pause", "far")
    shown = rota("schedules", "show", "far")

    assert set(rows) == {"far", "hourly", "nightly"}
    assert rows["far"][5] == ""
    assert (paused.code, paused.out) == (0, "far\tpaused\n")
    assert "there is no time zone 'Mars/Olympus'" in shown.err


@pytest.mark.req("V34")
def test_an_edit_wins_over_the_code_until_it_is_reset(rota, known):
    edited = rota(
        "schedules", "edit", "nightly", "--every", "10m", "--jitter", "30s", "--overlap", "allow", "--misfire", "all",
        "--cap", "3", "--grace", "5m", "--queue", "fast", "--priority", "7", "--arguments", '{"name": "Zoe"}',
    )  # fmt: skip
    known.do(lambda store: store.publish_schedules([NIGHTLY._replace(timing="0 5 * * *")]))
    held = record(known).effective
    reset = rota("schedules", "reset", "nightly")

    assert edited.code == 0
    assert edited.err.startswith("nightly: timing=every 10m, jitter=30.0, overlap=allow, misfire=all, cap=3")
    assert (held.timing, held.jitter, held.overlap, held.misfire, held.cap) == (
        "every 10m",
        30.0,
        "allow",
        "all",
        3,
    )
    assert json.loads(held.template_json) == {"queue": "fast", "priority": 7, "payload": {"name": "Zoe"}}
    assert (reset.code, reset.err) == (0, "nightly is as its code says again.\n")
    assert record(known).effective.timing == "0 5 * * *"


def test_a_distance_without_a_unit_is_seconds(rota, known):
    assert rota("schedules", "edit", "nightly", "--every", "90").code == 0
    assert rota("schedules", "next", "nightly", "-n", "2").code == 0
    assert record(known).effective.timing == "every 90"


def test_windows_are_set_and_taken_away(rota, known):
    rota("schedules", "edit", "nightly", "--window", "0 2 * * SUN for 3h", "--window", "0 3 1 * * for 1h")
    two = record(known).effective.windows
    rota("schedules", "edit", "nightly", "--no-windows")

    assert two == ("0 2 * * SUN for 3h", "0 3 1 * * for 1h")
    assert record(known).edits.windows == ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "say what to change, such as --cron"),
        (["--cron", "0 4 * * *", "--every", "5m"], "--cron and --every were both given"),
        (["--window", "x", "--no-windows"], "--window and --no-windows were both given"),
        (["--cron", "soon"], "the schedule 'soon' has 1 fields instead of five"),
        (["--tz", "Berlin"], "did you mean 'Europe/Berlin'?"),
        (["--every", "0.1s"], "too frequent"),
        (["--misfire", "all"], "misfire='all' makes several jobs at once, and overlap='skip' allows one"),
        (["--arguments", '{"nme": "Zoe"}'], "greet needs the argument 'name'"),
        (["--arguments", "[1]"], "object"),
        (["--window", "whenever"], "the window 'whenever' is not understood"),
        (["--jitter=-5"], "must be 0 or more"),
        (["--queue", ""], "queue must not be empty"),
    ],
)
def test_an_edit_that_cannot_be_is_refused_and_nothing_changes(rota, known, options, words):
    said = rota("schedules", "edit", "nightly", *options)

    assert said.code == 2
    assert words in said.err
    assert (record(known).version, trail(known)) == (1, [])


def test_a_backfill_makes_good_what_never_ran_and_nothing_twice(rota, known):
    known.do(lambda store: store.publish_schedules([HOURLY._replace(name="past", timing="0 12 * * *")]))
    range_ = ["--from", "2026-03-01T00:00Z", "--to", "2026-03-04T23:00Z"]

    planned = rota("schedules", "backfill", "past", *range_, "--dry-run")
    asked = rota("schedules", "backfill", "past", *range_)
    done = rota("schedules", "backfill", "past", *range_, "--yes", "--reason", "bug in March", "--json")
    wider = rota(
        "schedules", "backfill", "past", "--from", "2026-03-01T00:00Z", "--to", "2026-03-05T12:00Z", "-y"
    )
    again = rota("schedules", "backfill", "past", *range_, "--yes")

    assert (planned.code, planned.out, planned.err) == (0, "4\t4\n", "Would enqueue 4 jobs.\n")
    assert (asked.code, "add --yes to do it" in asked.err) == (2, True)
    assert json.loads(done.out) == {"schedule": "past", "ticks": 4, "enqueued": 4}
    assert wider.err == "past: 1 job enqueued; 4 ran before.\n"
    assert again.code == 4
    assert "nothing to make good; 4 ran before." in again.err
    ticks = [seen.tick for seen in known.do(lambda store: store.ticks("past"))]
    assert ticks == [datetime(2026, 3, day, 12, tzinfo=UTC) for day in (5, 4, 3, 2, 1)]
    assert trail(known, "past") == [
        ("ann@office", "backfill", None),
        ("ann@office", "backfill", "bug in March"),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--from", "2026-03-02", "--to", "2026-03-01"], "before it begins"),
        (["--from", "2026-03-02", "--to", "2999-01-01"], "the range ends in the future"),
        (["--from", "1990-01-01"], "more than 10,000 ticks. Backfill a part of it at a time."),
        (["--to", "2026-03-02"], "Missing option '--from'"),
        (["--from", "0001-01-01"], "'0001-01-01' is not a moment"),
    ],
)
def test_a_range_that_cannot_be_made_good_is_refused(rota, known, options, words):
    said = rota("schedules", "backfill", "hourly", *options, "--yes")

    assert said.code == 2
    assert words in said.err


def test_on_a_terminal_schedules_are_tables_for_people(known, jobs):
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "140", "NO_COLOR": "1"}
    child = pexpect.spawn(
        sys.executable, ["-m", "rota.cli", "schedules", "show", "nightly"], env=env, encoding="utf-8",
        dimensions=(60, 140), timeout=30,
    )  # fmt: skip
    said = child.read()
    child.close()

    assert child.exitstatus == 0, said
    for part in ("At 02:30 every day", "Arguments", '"name": "Ann"', "Next ticks", "Europe/Berlin"):
        assert part in said


@pytest.fixture
def vanished(known, fresh_database):
    """No running code has `nightly` any more."""
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute(
            "UPDATE rota.schedules SET seen_at = now() - interval '1 day' WHERE name = 'nightly'"
        )
    return known


def test_a_schedule_that_vanished_from_the_code_is_shown_as_absent(rota, vanished):
    rows = {line.split("\t")[0]: line.split("\t") for line in rota("schedules", "list").lines}

    assert (rows["nightly"][1], rows["nightly"][5]) == ("absent", "")
    assert rows["hourly"][1] == "active"


def test_an_absent_schedule_is_deleted_and_one_that_workers_have_is_not(rota, vanished):
    unsure = rota("schedules", "delete", "nightly")
    refused = rota("schedules", "delete", "hourly", "--yes")
    done = rota("schedules", "delete", "nightly", "--yes", "--reason", "replaced")
    again = rota("schedules", "delete", "nightly", "--yes")

    assert (unsure.code, "add --yes to do it" in unsure.err) == (2, True)
    assert refused.code == 2
    assert "'hourly' is in the code of a worker that runs" in refused.err
    assert "rota schedules pause hourly" in refused.err
    assert (done.code, done.out, done.err) == (0, "nightly\tdeleted\n", "Deleted nightly. Its jobs stay.\n")
    assert "no schedule is named 'nightly'" in again.err
    assert trail(vanished) == [("ann@office", "delete", "replaced")]
    assert [line.split("\t")[0] for line in rota("schedules", "list").lines] == ["hourly"]


# rota enqueue --tick


@pytest.mark.req("V32")
@pytest.mark.scenario(19)
@pytest.mark.parametrize("tick", ["2026-03-01T03:00Z", "day", "hour"])
def test_a_cron_job_that_fires_twice_enqueues_once(rota, jobs, app, tick):
    first = rota("enqueue", "greet", "name=Ann", "--tick", tick)
    second = rota("enqueue", "greet", "name=Ann", "--tick", tick)

    assert (first.code, second.code) == (0, 0)
    assert [said.out.split("\t")[1] for said in (first, second)] == ["created\n", "duplicate\n"]
    assert _id(first) == _id(second)
    assert jobs.get(_id(first)).tick is not None


def test_other_arguments_and_other_ticks_are_other_jobs(rota, jobs, app):
    ids = {
        _id(rota("enqueue", "greet", f"name={name}", "--tick", tick))
        for name in ("Ann", "Bob")
        for tick in ("2026-03-01T03:00Z", "2026-03-02T03:00Z", "2026-03-02T04:00+01:00")
    }

    assert len(ids) == 4


def test_a_tick_stays_one_job_when_its_job_is_done_or_deleted(rota, jobs, app):
    first = rota("enqueue", "greet", "name=Ann", "--tick", "2026-03-01T03:00Z")
    rota("jobs", "delete", str(_id(first)), "--yes")
    again = rota("enqueue", "greet", "name=Ann", "--tick", "2026-03-01T03:00Z")

    assert again.out == f"{_id(first)}\tduplicate\n"


def test_a_bare_tick_is_the_current_minute_of_the_store(rota, jobs, app):
    said = rota("enqueue", "greet", "name=Ann", "--tick")
    tick = jobs.get(_id(said)).tick

    assert (tick.second, tick.microsecond) == (0, 0)
    assert timedelta(0) <= datetime.now(UTC) - tick < timedelta(minutes=2)


def test_a_job_is_not_due_before_its_tick_whatever_clock_cron_has(rota, jobs, app):
    said = rota("enqueue", "greet", "name=Ann", "--tick", "2999-03-01T03:00Z")

    assert jobs.get(_id(said)).run_at == datetime(2999, 3, 1, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tick", "name=Ann"], "looks like an argument of the task. Write --tick=minute"),
        (["name=Ann", "--tick", "soon"], "'soon' is not a moment"),
        (["name=Ann", "--tick", "day", "--key", "k"], "the tick is the key"),
    ],
)
def test_a_tick_that_cannot_be_is_refused(rota, jobs, app, options, words):
    said = rota("enqueue", "greet", *options)

    assert said.code == 2
    assert words in said.err
