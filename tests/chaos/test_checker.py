"""The checker itself: it is content with a good run, and finds each kind of wrong that is planted into one."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.checker import check, report
from chaos.effects import Effect
from chaos.evidence import Evidence, Limits, Outage
from chaos.facts import Life, Row, Samples, Tables, Tried
from chaos.fleet import Death, Freeze
from chaos.journal import Entry
from chaos.reduction import shortest
from chaos.trail import Letter, Told

# One job: claimed by process 10 (fence 2), whose lease ended at 115 after a kill at 101, then completed by process 20.
ENTRY = Entry("a", "job")
KILLED_RUN = Effect("a", "job", 2, 1, 10, 100.0)
GOOD_RUN = Effect("a", "job", 4, 2, 20, 116.0, 117.0, "returned")
ROW = Row("job", 5, "completed", 2, 5, "a", {"fence": 4}, "second")
LOST = Tried("job", 2, 1, "retry", "lost", "first", 99.9, 115.5)
FIRST = Life("first", 10, 115.0, 115.5)
SECOND = Life("second", 20, 130.0, None)
DEATH = Death(10, 101.0, -9, wanted=True)


def evidence(**changes: Any) -> Evidence:
    """The good run, but for the changes."""
    told: dict[str, Any] = {
        "entries": [ENTRY],
        "effects": [KILLED_RUN, GOOD_RUN],
        "rows": [ROW],
        "tried": [LOST],
        "lives": [FIRST, SECOND],
        "deaths": [DEATH],
    } | changes
    tables = Tables(told.pop("rows"), told.pop("tried"), told.pop("lives"))
    return Evidence(told.pop("entries"), told.pop("effects"), tables, **told)


def broken(**changes: Any) -> set[str]:
    """Which invariants are broken by the changes."""
    return {violation.invariant for violation in check(evidence(**changes))}


def test_a_run_with_an_explained_kill_is_fine():
    assert check(evidence()) == []


def test_an_enqueue_that_was_refused_may_have_no_job():
    assert broken(entries=[ENTRY, Entry("b", None, 1)]) == set()


def test_an_acknowledged_job_that_is_gone_is_found():
    assert broken(entries=[ENTRY, Entry("b", "other")]) == {"I1"}


def test_a_job_stored_twice_is_found_also_where_it_was_never_acknowledged():
    twin = ROW._replace(job="twin")
    run = GOOD_RUN._replace(job="twin")
    lost, before = LOST._replace(job="twin"), KILLED_RUN._replace(job="twin")
    doubled = {"rows": [ROW, twin], "effects": [KILLED_RUN, GOOD_RUN, before, run], "tried": [LOST, lost]}

    assert broken(**doubled) == {"I1"}
    assert broken(**doubled, entries=[Entry("a", None, 1)]) == {"I1"}


def test_a_job_acknowledged_under_another_id_is_found():
    assert broken(entries=[Entry("a", "other")]) == {"I1"}


def test_a_job_of_a_transaction_that_was_given_up_is_found():
    assert broken(entries=[ENTRY, Entry("b", None, withdrawn=True)]) == set()
    assert broken(entries=[Entry("a", None, withdrawn=True)]) == {"I1"}


def test_a_job_that_nobody_enqueued_is_found():
    assert broken(entries=[]) == {"I1"}


@pytest.mark.parametrize("state", ["running", "pending"])
def test_a_job_that_never_ended_is_found(state):
    assert "I2" in broken(rows=[ROW._replace(state=state)])


def test_a_job_that_died_although_it_had_attempts_left_is_found():
    assert "I2" in broken(rows=[ROW._replace(state="dead")])


def test_an_end_that_changed_is_found():
    assert broken(samples=Samples([("job", "completed v5", "completed v7")])) == {"I2"}


def test_a_result_written_by_an_older_claim_is_found():
    assert "I3" in broken(rows=[ROW._replace(result={"fence": 2})])


def test_a_completion_without_a_handler_that_returned_is_found():
    assert "I3" in broken(effects=[KILLED_RUN, GOOD_RUN._replace(how="cancelled")])
    assert "I3" in broken(effects=[KILLED_RUN])


def test_a_failure_stored_for_a_handler_that_returned_is_found():
    failed = LOST._replace(error_class="retryable")

    assert "I3" in broken(tried=[failed], effects=[KILLED_RUN._replace(end=101.0, how="returned"), GOOD_RUN])


def test_two_executions_at_once_under_a_living_lease_are_found():
    lingering = KILLED_RUN._replace(end=118.0, how="returned")

    assert broken(effects=[lingering, GOOD_RUN]) == set()
    assert broken(effects=[lingering, GOOD_RUN], lives=[FIRST._replace(lease_until=119.0), SECOND]) == {"I4"}


def test_a_process_that_never_died_and_never_ended_its_handler_is_still_running():
    frozen = {"deaths": [], "freezes": [Freeze(10, 100.5, 120.0)]}

    assert broken(**frozen) == set()
    assert broken(**frozen, lives=[FIRST._replace(lease_until=119.0), SECOND]) == {"I4"}


def test_a_handler_in_a_process_of_its_own_ends_with_that_process_and_not_only_with_its_worker():
    alone = KILLED_RUN._replace(child=11)
    crashed = {
        "tried": [LOST._replace(error_class="crash")],
        "lives": [FIRST._replace(lease_until=119.0), SECOND],
        "effects": [alone, GOOD_RUN],
    }

    assert broken(**crashed, deaths=[DEATH._replace(pid=11)]) == set()
    assert broken(**crashed, deaths=[DEATH._replace(pid=11, at=118.0)]) == {"I4"}
    assert broken(**crashed, deaths=[]) == {"I4", "I7"}


def test_a_process_that_was_asked_to_stop_and_then_killed_was_killed():
    asked = DEATH._replace(at=100.5, code=0)

    assert broken(tried=[LOST._replace(error_class="crash")], deaths=[asked, DEATH]) == set()
    assert broken(tried=[LOST._replace(error_class="crash")], deaths=[asked]) == {"I7"}


def test_one_claim_run_twice_is_found():
    assert "I4" in broken(effects=[KILLED_RUN, GOOD_RUN, GOOD_RUN._replace(start=118.0, end=119.0)])


def test_a_gap_in_the_attempts_is_found():
    assert broken(rows=[ROW._replace(attempt=3)]) == {"I5"}


def test_more_attempts_than_allowed_are_found():
    assert broken(rows=[ROW._replace(max_attempts=1)]) == {"I5"}


def test_a_start_that_no_attempt_accounts_for_is_found():
    assert "I5" in broken(tried=[], rows=[ROW._replace(attempt=1)])


def test_two_jobs_of_one_unique_key_or_in_one_gate_at_once_are_found():
    assert broken(samples=Samples([], [("account:7", 2)])) == {"I6"}
    assert broken(samples=Samples([], [], [("serial::site", 2)])) == {"I6"}


def test_two_executions_in_one_group_at_once_are_found():
    ran = {"rows": [ROW, ROW._replace(job="two", key="b", attempt=1)], "entries": [ENTRY, Entry("b", "two")]}
    first = GOOD_RUN._replace(group="g")
    during = Effect("b", "two", 4, 1, 20, 116.5, 118.0, "returned", "g")

    assert broken(**ran, effects=[KILLED_RUN, first, during]) == {"I6"}
    assert broken(**ran, effects=[KILLED_RUN, first, during._replace(start=117.5)]) == set()
    told = report(seen := evidence(**ran, effects=[KILLED_RUN, first, during]), check(seen))
    assert "a: 116.000 start     pid 20 fence 4" in told, (
        "the history does not show the one that was in the way"
    )


def test_a_second_start_that_no_fault_explains_is_found():
    assert broken(deaths=[], effects=[KILLED_RUN._replace(end=101.0, how="returned"), GOOD_RUN]) == {"I7"}


def test_a_kill_before_the_start_explains_nothing():
    assert "I7" in broken(deaths=[DEATH._replace(at=99.0)])


def test_a_worker_that_ended_by_itself_is_found():
    assert "I12" in broken(deaths=[DEATH._replace(wanted=False)])


@pytest.mark.parametrize(
    "changes",
    [
        {"orphans": [4711]},
        {"samples": Samples([], [], [], connections=101)},
        {"samples": Samples([], [], [], notifications=0.3)},
        {"samples": Samples([], [], [], memory=2), "limits": Limits(memory=1)},
    ],
    ids=["orphan", "connections", "notices", "memory"],
)
def test_what_grows_without_bounds_is_found(changes):
    assert broken(**changes) == {"I12"}


def test_the_report_tells_the_shortest_history():
    short = Entry("b", "other")
    seen = evidence(entries=[ENTRY, short], rows=[ROW._replace(result={"fence": 2})])

    text = report(seen, check(seen))

    assert "I1: 1, I3: 1" in text
    assert "the shortest history, of b (I1 acknowledged as job other, and no job is there):" in text
    assert text.splitlines()[-1] == f"journal   {short}"


def test_the_history_of_a_job_is_in_the_order_of_time():
    told = "\n".join(evidence().history("a"))
    order = [
        "journal",
        "start     pid 10 fence 2",
        "death     pid 10",
        "lease     of fence 2",
        "attempt   1 fence 2",
    ]
    order += ["start     pid 20 fence 4", "end       pid 20 fence 4 returned", "stored"]

    assert [told.index(part) for part in order] == sorted(told.index(part) for part in order)


def test_a_history_is_thinned_out_to_what_breaks_the_promise():
    """A job that was killed and froze, retried and moved on; what is wrong is that two claims overlapped."""
    lingering = KILLED_RUN._replace(end=118.0, how="returned")
    others = [Entry(f"other-{number}", f"job-{number}") for number in range(5)]
    rows = [ROW._replace(job=entry.job, key=entry.key, attempt=1, result={"fence": 4}) for entry in others]
    runs = [GOOD_RUN._replace(key=entry.key, job=entry.job, attempt=1) for entry in others]
    seen = evidence(
        entries=[ENTRY, *others],
        rows=[ROW, *rows],
        effects=[lingering, GOOD_RUN, *runs],
        lives=[FIRST._replace(lease_until=119.0), SECOND],
        freezes=[Freeze(10, 100.5, 120.0)],
        deaths=[],
    )
    [violation] = check(seen)

    part = shortest(seen, violation, check)

    assert violation.invariant == "I4"
    assert part.effects == [lingering, GOOD_RUN]
    assert [part.entries, part.tables.rows, part.tables.tried, part.freezes] == [[], [], [], []]
    assert [line.split()[1] for line in part.history("a")] == ["start", "start", "end", "end"]


def test_what_only_the_whole_evidence_shows_stays_whole():
    seen = evidence(samples=Samples([("job", "completed v5", "completed v7")]))
    [violation] = check(seen)

    assert shortest(seen, violation._replace(key="nobody"), check) is seen


def test_a_loss_that_an_outage_explains_is_fine_and_one_that_it_does_not_is_found():
    unkilled = {"deaths": [], "effects": [KILLED_RUN._replace(end=113.0, how="cancelled"), GOOD_RUN]}

    assert broken(**unkilled) == {"I7"}
    assert broken(**unkilled, outages=[Outage(102.0, 114.0)]) == set()
    assert broken(**unkilled, outages=[Outage(80.0, 84.0)]) == {"I7"}
    assert broken(**unkilled, outages=[Outage(115.1, 120.0)]) == {"I7"}


def test_an_outage_explains_a_loss_also_where_one_more_beat_landed_that_nobody_heard_of():
    """It ended before the last stored beat (at 100, for a lease of 15), and its session was given up in it."""
    unkilled = {"deaths": [], "effects": [KILLED_RUN._replace(end=113.0, how="cancelled"), GOOD_RUN]}

    assert broken(**unkilled, outages=[Outage(90.0, 99.0)]) == set()


def test_a_review_that_the_audit_does_not_tell_of_is_found():
    tables = Tables([ROW], [LOST], [FIRST, SECOND], [], [Letter("job", "discarded")])
    seen = evidence()
    seen.tables = tables

    [violation] = check(seen)
    assert (violation.invariant, violation.key) == ("I9", "a")
    seen.tables = tables._replace(told=[Told("job", "job_dlq_discarded")])
    assert check(seen) == []
    seen.tables = tables._replace(told=[Told("job", "job_dlq_discarded")] * 2)
    assert [found.invariant for found in check(seen)] == ["I9"]


def test_an_operators_action_that_is_told_once_too_often_is_found():
    seen = evidence()
    seen.tables = seen.tables._replace(told=[Told("job", "hold"), Told("job", "release")])
    assert check(seen) == []

    seen.tables = seen.tables._replace(told=[Told("job", "hold"), Told("job", "hold")])
    [violation] = check(seen)
    assert (violation.invariant, violation.what) == ("I9", "it was held while it was held")
