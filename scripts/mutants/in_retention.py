"""Mutants of retention and the archive: what goes, what must not, and by which policy."""

from __future__ import annotations

from mutant import Mutant

SQL = "stores/postgres/sql"
ARCHIVE = "conformance/test_archive.py"
PURGE = "stores/postgres/test_purge.py"
OPEN = "test_an_open_reprocess_keeps_both_the_dead_letter_and_the_job_that_does_its_work"
BOUND = "      AND job.id NOT IN (SELECT unnest(%(bound)s::uuid[]))\n"

MUTANTS = (
    Mutant(
        name="a finished job goes although an unfinished one names it as its parent",
        file=f"{SQL}/prune_day.sql",
        old=BOUND,
        new="",
        where=ARCHIVE,
        by="test_a_job_with_unfinished_children_stays_until_they_have_ended[postgres]",
    ),
    Mutant(
        name="a dead job goes although an unfinished one names it as its parent",
        file=f"{SQL}/prune_dead.sql",
        old=BOUND,
        new="",
        where=ARCHIVE,
        by="test_a_job_with_unfinished_children_stays_until_they_have_ended[postgres]",
    ),
    Mutant(
        name="the job of an open reprocess goes before its review is closed",
        file=f"{SQL}/prune_day.sql",
        old="WHERE dead.review = 'reprocessing' AND",
        new="WHERE dead.review = 'never' AND",
        where=ARCHIVE,
        by=f"{OPEN}[postgres-completed]",
    ),
    Mutant(
        name="a dead letter goes while its work is done again",
        file=f"{SQL}/prune_dead.sql",
        old="WHERE job.review IN ('acknowledged',",
        new="WHERE job.review IN ('reprocessing', 'acknowledged',",
        where=ARCHIVE,
        by=f"{OPEN}[postgres-completed]",
    ),
    Mutant(
        name="the least specific policy counts",
        file=f"{SQL}/prune_day.sql",
        old="ORDER BY p.weight DESC",
        new="ORDER BY p.weight",
        where="conformance/test_retention_policies.py",
        by="test_of_the_policies_that_fit_a_job_the_most_specific_counts[postgres]",
    ),
    Mutant(
        name="a purge by hand takes what a policy keeps for ever",
        file=f"{SQL}/prune_day.sql",
        old="CASE WHEN said.keep = 'Infinity' THEN said.keep",
        new="CASE WHEN false THEN said.keep",
        where=ARCHIVE,
        by="test_older_than_counts_in_place_of_the_policies_but_not_of_those_for_ever[postgres]",
    ),
    Mutant(
        name="a day is dropped with the jobs in it",
        file="stores/postgres/migrations/0010_retention.sql",
        old="    IF jobs THEN\n",
        new="    IF false THEN\n",
        where=PURGE,
        by="test_a_detached_day_with_jobs_in_it_is_put_back_and_archived_before_it_is_dropped",
    ),
    Mutant(
        name="an archived id is stored again by a repeated enqueue",
        file=f"{SQL}/undo_repeated.sql",
        old="       OR EXISTS (SELECT FROM rota.archived_jobs AS archived WHERE archived.id = job.id)\n",
        new="",
        where=ARCHIVE,
        by="test_a_repeated_enqueue_does_not_bring_an_archived_job_back[postgres-None]",
    ),
    Mutant(
        name="two purge at once",
        file=f"{SQL}/prune_turn.sql",
        old="WHERE turn.holder = excluded.holder OR turn.until <= coalesce(%(now)s::timestamptz, now())\n",
        new="",
        where=PURGE,
        by="test_one_purges_at_a_time_and_a_turn_that_was_left_behind_ends_by_itself",
    ),
)
