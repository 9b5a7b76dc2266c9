"""Retention as pure rules: which policy counts, how long that is, and when a job may go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from build import a_stored_job
from rota._core.job import State
from rota._core.retention import (
    AT_LEAST,
    DAY,
    Policy,
    Pruning,
    archive_keep,
    chosen,
    keep_of,
    let_go_at,
    summary,
)
from rota.errors import JobArchived, JobNotFound

ENDED = datetime(2026, 5, 4, 15, 30, tzinfo=UTC)


def test_a_tenant_counts_before_a_task_and_a_task_before_a_state():
    state, task, both = Policy(1, "completed"), Policy(2, task="ping"), Policy(3, "completed", "ping")
    tenant = Policy(4, tenant="acme")

    def best(*policies: Policy) -> Policy | None:
        return chosen(policies, "completed", "ping", "acme")

    assert best(state, task) == task
    assert best(both, task, state) == both
    assert best(tenant, both) == tenant
    assert best(tenant, Policy(5, "completed", tenant="acme")) == Policy(5, "completed", tenant="acme")
    assert best(Policy(6, "dead"), Policy(7, task="mail"), Policy(8, tenant="zen")) is None
    assert best(Policy(9), state) == state


@pytest.mark.parametrize(
    ("policy", "older_than", "keep"),
    [
        (None, None, 100.0),
        (Policy(500.0), None, 500.0),
        (Policy(0.0), None, AT_LEAST),
        (Policy(None), None, None),
        (Policy(500.0), 70.0, 70.0),
        (None, 0.0, AT_LEAST),
        (Policy(None), 70.0, None),
    ],
)
def test_how_long_a_job_is_kept(policy, older_than, keep):
    assert keep_of(policy, 100.0, Pruning(older_than=older_than)) == keep


def test_whole_days_count_from_the_end_of_the_day_and_other_times_from_the_end_of_the_job():
    midnight = datetime(2026, 5, 5, tzinfo=UTC)

    assert let_go_at(ENDED, 7 * DAY) == midnight + timedelta(days=7)
    assert let_go_at(ENDED, 7 * DAY, exact=True) == ENDED + timedelta(days=7)
    assert let_go_at(ENDED, 1.5 * DAY) == ENDED + timedelta(days=1.5)
    assert let_go_at(ENDED, 0.0) == ENDED
    assert let_go_at(ENDED, None) is None


def test_a_policy_says_in_words_what_it_is_about():
    assert Policy(1.0).words == "all"
    assert Policy(1.0, "dead", tenant="acme").words == "state=dead tenant=acme"


def test_only_a_policy_about_the_archive_counts_for_the_archive():
    assert archive_keep([Policy(5.0), Policy(6.0, "dead")], 100.0) == 100.0
    assert archive_keep([Policy(5.0), Policy(7.0, "archived")], 100.0) == 7.0
    assert archive_keep([Policy(None, "archived")], 100.0) is None


def test_the_error_for_an_archived_job_says_what_became_of_it_and_where_to_look():
    job = a_stored_job(State.COMPLETED, finished_at=ENDED)
    error = JobArchived(summary(job, ENDED + timedelta(days=8)))

    assert isinstance(error, JobNotFound)
    assert error.summary.state is State.COMPLETED
    assert str(error) == (
        f"job {job.id} (email) ended completed at 2026-05-04 15:30 UTC and was archived at 2026-05-12 15:30: its "
        f"arguments and its result are gone. `rota jobs show {job.id}` has what is left of it."
    )
