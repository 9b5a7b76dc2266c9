"""Mutants of numbers along time, and of bulk operations on jobs."""

from __future__ import annotations

from mutant import Mutant

SQL = "stores/postgres/sql"
JOBS = "admin/test_job_operations.py"
SERIES = "conformance/test_series.py"

MUTANTS = (
    Mutant(
        name="an operation on jobs takes what was made after it began",
        file="_core/operation.py",
        old="created_until=until, ",
        new="",
        where=JOBS,
        by="test_what_is_made_later_is_not_touched_however_late_it_is_driven[memory]",
    ),
    Mutant(
        name="jobs that have not ended are deleted by filter",
        file="admin/bulk.py",
        old="if verb is Verb.DELETE and wanted.states:",
        new="if False:",
        where=JOBS,
        by="test_what_has_not_ended_is_never_deleted_by_filter[memory-state:pending]",
    ),
    Mutant(
        name="who was shown ten jobs acts on ten thousand",
        file="admin/job_operations.py",
        old="expected is not None and expected < COUNT_CAP",
        new="False",
        where=JOBS,
        by="test_who_was_shown_far_fewer_is_asked_again[memory]",
    ),
    Mutant(
        name="an operation of one tenant goes on with everybody's jobs",
        file="_core/operation.py",
        old="tenant=self.tenant or meant.tenant",
        new="tenant=meant.tenant",
        where=JOBS,
        by="test_a_tenant_operates_on_his_own_jobs_whoever_drives_it[memory]",
    ),
    Mutant(
        name="what is hidden is kept in the filter of an operation",
        file="admin/job_operations.py",
        old="if argument.hidden:",
        new="if False:",
        where=JOBS,
        by="test_what_is_hidden_cannot_be_in_a_filter_that_is_kept[memory]",
    ),
    Mutant(
        name="an operator goes on with what a manager began to delete",
        file="web/api/operations.py",
        old="refuse_lower(asked, (await asked.admin.operation(operation_id)).verb)",
        new="await asked.admin.operation(operation_id)",
        where="web_nouns/test_noun_job_operations.py",
        by="test_only_a_manager_deletes_or_goes_on_deleting[memory]",
    ),
    Mutant(
        name="hours that are added up are drawn twice",
        file=f"{SQL}/series.sql",
        old="m.minute >= %(summed)s::timestamptz",
        new="m.minute >= %(start)s::timestamptz",
        where=SERIES,
        by="test_a_series_is_the_same_before_and_after_its_hours_are_added_up[postgres]",
    ),
)
