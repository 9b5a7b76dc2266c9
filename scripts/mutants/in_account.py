"""Mutants of dead letters, bulk operations and the audit."""

from __future__ import annotations

from mutant import Mutant

SQL = "stores/postgres/sql"
MIGRATIONS = "stores/postgres/migrations"
LETTERS = "conformance/test_dead_letters.py"
REPROCESSING = "conformance/test_reprocessing.py"
OPERATIONS = "conformance/test_operations_stored.py"
SCOPE = "admin/test_tenant_scope.py"

MUTANTS = (
    Mutant(
        name="a review is changed whatever its version",
        file=f"{SQL}/review.sql",
        old=" AND dead.version = %(version)s AND dead.review = %(origin)s",
        new="",
        where=LETTERS,
        by="test_a_review_of_an_older_version_changes_nothing[postgres]",
    ),
    Mutant(
        name="a reprocessing is told by half",
        file="stores/postgres/dead_letters.py",
        old="for audit in audits:",
        new="for audit in audits[:1]:",
        where=REPROCESSING,
        by="test_a_double_click_makes_one_job_and_one_audit_pair[postgres]",
    ),
    Mutant(
        name="the key of a dead job stays with it when its work is done again",
        file=f"{SQL}/inherit_keys.sql",
        old="WHERE held.job_id = %(dead)s AND",
        new="WHERE held.job_id = %(id)s AND",
        where=REPROCESSING,
        by="test_the_idempotency_key_leads_to_the_new_job[postgres]",
    ),
    Mutant(
        name="the audit can be deleted from",
        file="stores/postgres/migrations/0006_dead_letters.sql",
        old="BEFORE UPDATE OR DELETE ON rota.audit",
        new="BEFORE UPDATE ON rota.audit",
        where="stores/postgres/test_audit_kept.py",
        by="test_removing_leaves_the_audit_as_closed_as_it_was",
    ),
    Mutant(
        name="a driver goes on when another has taken its operation over",
        file=f"{SQL}/operation_advance.sql",
        old=" AND o.driver = %(driver)s",
        new="",
        where=OPERATIONS,
        by="test_a_stopped_operation_tells_its_driver_and_goes_on_under_another[postgres]",
    ),
    Mutant(
        name="a dead letter is resolved by a new job that died",
        file="_core/review.py",
        old="if state in (State.COMPLETED, State.PARTIAL):",
        new="if state in (State.COMPLETED, State.PARTIAL, State.DEAD):",
        where=REPROCESSING,
        by="test_a_dead_letter_is_back_in_review_when_the_new_job_dies_and_only_one_of_them_is_open[memory]",
    ),
    Mutant(
        name="a seal does not follow from the one before",
        file="_core/seal.py",
        old="return sha256(before + digest + str(_micros(at)).encode()).digest()",
        new="return sha256(digest + str(_micros(at)).encode()).digest()",
        where="conformance/test_seals.py",
        by="test_an_audit_that_nobody_touched_is_as_it_was_written[postgres]",
    ),
    Mutant(
        name="a row of the audit that is gone is taken to be removed on purpose",
        file="_core/seal.py",
        old="(limit is None or stolen.at >= limit)",
        new="(limit is not None and stolen.at >= limit)",
        where="stores/postgres/test_audit_tampering.py",
        by="test_a_row_that_was_taken_out_is_named",
    ),
    Mutant(
        name="the chain of the audit is locked before the commit",
        file=f"{MIGRATIONS}/0014_seals.sql",
        old="DEFERRABLE INITIALLY DEFERRED",
        new="DEFERRABLE INITIALLY IMMEDIATE",
        where="stores/postgres/test_audit_tampering.py",
        by="test_two_who_act_at_once_do_not_wait_for_each_other_until_they_commit",
    ),
    Mutant(
        name="a tenant finds the jobs of others by their ids",
        file="admin/scope.py",
        old="return [job for job in await self._store.get(job_ids) if job.tenant == self.tenant]",
        new="return await self._store.get(job_ids)",
        where=SCOPE,
        by="test_a_foreign_job_is_not_there_for_any_verb_and_nothing_happens_to_it[memory-show]",
    ),
    Mutant(
        name="a tenant reads the whole audit",
        file="admin/scope.py",
        old="mine = (row for row in rows if (row.about if row.job_id is None else row.job_id) in own)",
        new="mine = list(rows)",
        where=SCOPE,
        by="test_the_audit_tells_of_ones_own_jobs[memory]",
    ),
    Mutant(
        name="the first hour of a stretch is counted whole",
        file=f"{SQL}/figures_span.sql",
        old="+ interval '59 minutes'",
        new="+ interval '0 minutes'",
        where="conformance/test_minutes.py",
        by="test_a_long_stretch_is_the_same_before_and_after_its_hours_are_added_up[postgres]",
    ),
    Mutant(
        name="a deploy is told again after a lost answer",
        file="stores/postgres/upkeep.py",
        old="if audit is not None and not (repeated and await _told(connection, audit)):",
        new="if audit is not None:",
        where="chaos/test_lost_answers.py",
        by="test_a_deploy_whose_answer_was_lost_is_told_once[Cut.AFTER]",
    ),
)
