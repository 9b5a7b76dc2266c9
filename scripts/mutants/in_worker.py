"""Mutants of the worker: what it does when it may have lost its session, how jobs end, and its processes."""

from __future__ import annotations

from mutant import Mutant

FENCING = "worker/test_self_fencing.py"
LIVES = "worker/test_worker_sessions.py"
CANCELLING = "worker/test_worker_cancelling.py"
FAREWELL = "worker/supervisor/test_farewell.py"
DEATHS = "worker/process/test_process_deaths.py"
SUPERVISED = "worker/supervisor/test_supervised_deaths.py"
CHILDREN = "worker/executors/process"
OWN = "worker/test_own_transactions.py"

ONE_COMMIT = (
    Mutant(
        name="a handler's rows are committed although its job is somebody else's",
        file="stores/postgres/own.py",
        old='                if rows and verb == "exchange":\n                    await self.undo()',
        new='                if rows is None and verb == "exchange":\n                    await self.undo()',
        where=OWN,
        by="test_a_worker_that_lost_its_job_commits_nothing[coroutine]",
    ),
    Mutant(
        name="a plain function's rows are committed although its job is somebody else's",
        file="stores/postgres/own.py",
        old='                    if rows and verb == "exchange":\n                        self._undo_plain()',
        new='                    if rows is None and verb == "exchange":\n                        self._undo_plain()',
        where=OWN,
        by="test_a_worker_that_lost_its_job_commits_nothing[thread]",
    ),
    Mutant(
        name="a commit whose answer was lost counts as undone",
        file="stores/postgres/own.py",
        old="            if not await asyncio.to_thread(self._landed):\n",
        new="            if True:\n",
        where="chaos/test_one_commit.py",
        by="test_a_commit_whose_answer_was_lost_is_known_by_asking",
    ),
    Mutant(
        name="a handler that does not stop keeps its locks",
        file="worker/runner.py",
        old="            run.work.cut()",
        new="            pass",
        where=OWN,
        by="test_a_handler_that_does_not_stop_is_undone_and_its_locks_are_freed",
    ),
    Mutant(
        name="whatever a handler left on its connection reaches the next one",
        file="stores/postgres/lent.py",
        old='    await connection.execute("DISCARD ALL")\n',
        new="",
        where=OWN,
        by="test_what_a_handler_leaves_behind_on_its_connection_does_not_reach_the_next",
    ),
)

SELF_FENCING = (
    Mutant(
        name="what was claimed before a freeze is run after it",
        file="worker/desk.py",
        old="if order.session is not self.session or not order.session.trusted:",
        new="if order.session is not self.session:",
        where=FENCING,
        by="test_what_a_claim_brings_after_a_freeze_past_the_lease_is_not_taken_in",
    ),
    Mutant(
        name="what was claimed under an ended session is run under the next one",
        file="worker/desk.py",
        old="if order.session is not self.session or not order.session.trusted:",
        new="if not order.session.trusted:",
        where="worker/test_worker_waking.py",
        by="test_what_was_claimed_under_a_session_that_ended_meanwhile_is_not_taken_in",
    ),
    Mutant(
        name="a session that is no longer trusted asks for work",
        file="worker/desk.py",
        old="        if session is None or not session.trusted:\n            return None",
        new="        if session is None:\n            return None",
        where=FENCING,
        by="test_an_untrusted_session_asks_for_no_work_and_writes_no_ends",
    ),
    Mutant(
        name="what waited during a freeze is begun after it",
        file="worker/runner.py",
        old="        if session is None or not session.trusted:\n",
        new="        if session is None:\n",
        where=FENCING,
        by="test_after_a_freeze_past_the_lease_nothing_that_waits_is_begun",
    ),
    Mutant(
        name="trust counts from the answer to a beat",
        file="worker/heart.py",
        old="session.prolong(sent)",
        new="session.prolong(monotonic())",
        where=FENCING,
        by="test_trust_counts_from_when_a_beat_was_sent_and_not_from_its_answer",
    ),
    Mutant(
        name="trust lasts as long as the lease, to the last moment",
        file="worker/session.py",
        old="self.trusted_until = sent + self.lease - min(MARGIN, self.lease / 5)",
        new="self.trusted_until = sent + self.lease",
        where=FENCING,
        by="test_trust_in_a_session_ends_before_its_lease_does",
    ),
    Mutant(
        name="handlers go on when their session is no longer trusted",
        file="worker/custody.py",
        old="        self._lose(held)\n",
        new="",
        where=LIVES,
        by="test_a_worker_that_cannot_beat_stops_its_handlers_before_its_lease_ends",
    ),
    Mutant(
        name="the end of a job that was taken away is written",
        file="worker/runner.py",
        old="        if run.stop is Stop.LOST:\n",
        new="        if run.stop is Stop.LOST and lane is None:\n",
        where=LIVES,
        by="test_a_worker_that_cannot_beat_stops_its_handlers_before_its_lease_ends",
    ),
    Mutant(
        name="a stray is handed back while the claim that brings it is on its way",
        file="worker/custody.py",
        old="if self._strays.get(key, now) < oldest_flight]",
        new="if self._strays.get(key, now) < now]",
        where=FENCING,
        by="test_a_stray_is_not_handed_back_while_a_claim_is_on_its_way_that_may_bring_it",
    ),
    Mutant(
        name="a stray is never handed back",
        file="worker/custody.py",
        old="            self._desk.settle(run)\n        if ripe",
        new="        if ripe",
        where=LIVES,
        by="test_a_claim_whose_answer_was_lost_is_found_by_the_heartbeat_and_handed_back_uncounted",
    ),
)

ENDINGS = (
    Mutant(
        name="an end that could not be written is forgotten",
        file="worker/desk.py",
        old="        self.outbox[:0] = order.batch\n",
        new="",
        where="worker/test_worker_outages.py",
        by="test_a_settle_that_failed_is_not_lost_behind_others",
    ),
    Mutant(
        name="a job is begun after its deadline",
        file="worker/runner.py",
        old="            return Expired()\n",
        new="            return None\n",
        where="worker/test_worker_outcomes.py",
        by="test_a_job_whose_deadline_has_passed_is_dead_and_never_begun",
    ),
    Mutant(
        name="a job that comes back with a cancel on it is begun",
        file="worker/runner.py",
        old="        if run.stop is Stop.CANCEL or job.cancel_requested_at is not None:\n",
        new="        if run.stop is Stop.CANCEL:\n",
        where=CANCELLING,
        by="test_a_job_that_comes_back_with_a_cancel_on_it_is_never_begun",
    ),
    Mutant(
        name="a cancel that only a beat tells of is lost",
        file="worker/custody.py",
        old="for run in (named[job_id] for job_id in beat.cancel):",
        new="for run in (named[job_id] for job_id in beat.cancel if job_id in beat.lost):",
        where=CANCELLING,
        by="test_a_running_coroutine_is_cancelled_and_the_reason_is_kept[by heartbeat]",
    ),
    Mutant(
        name="work is done again because its result could not be stored",
        file="worker/endings.py",
        old="    failure = failure_of(error, ErrorClass.NON_RETRYABLE)\n    return Raised(\n",
        new="    failure = failure_of(error, ErrorClass.RETRYABLE)\n    return Raised(\n",
        where="worker/test_worker_handlers.py",
        by="test_a_result_that_cannot_be_stored_is_dead_at_once_because_the_work_was_done[memory]",
    ),
    Mutant(
        name="work that must not happen twice is handed back while its thread still runs",
        file="worker/endings.py",
        old="        case _ if not run.retry.lost:",
        new="        case _ if run.retry is None:",
        where="worker/test_worker_stopping.py",
        by="test_a_thread_that_cannot_be_stopped_is_handed_back_unless_it_must_never_run_twice",
    ),
    Mutant(
        name="a rescuer judges tasks of other workers by the usual policy",
        file="worker/chores/rescuer.py",
        old="return self._published.get(name, Retry())",
        new="return Retry()",
        where="worker/test_worker_chores.py",
        by="test_a_task_that_must_never_run_twice_is_dead_when_its_worker_disappears[only in the store]",
    ),
)

PROCESSES = (
    Mutant(
        name="what a job has started outlives it",
        file=f"{CHILDREN}/family.py",
        old="    ended = _end_all(lambda: members(mark, leader) - {leader})\n",
        new="    ended = 0\n",
        where=DEATHS,
        by="test_what_a_handler_starts_ends_with_its_job[leave_a_program]",
    ),
    Mutant(
        name="the child of a job that was taken away runs on",
        file=f"{CHILDREN}/children.py",
        old="        elif run.stop is Stop.LOST:\n",
        new="        elif run.stop is None:\n",
        where=DEATHS,
        by="test_a_job_that_is_no_longer_ours_is_ended_with_its_child_at_once",
    ),
    Mutant(
        name="a child outlives its worker",
        file=f"{CHILDREN}/system.py",
        old="        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)\n",
        new="",
        where="worker/process/test_process_family.py",
        by="test_a_child_that_holds_the_interpreter_and_can_hear_nothing_dies_with_its_worker",
    ),
    Mutant(
        name="a child may send results of any size",
        file=f"{CHILDREN}/ends.py",
        old="        trouble = problem(text, limit=limit)\n",
        new="        trouble = problem(text)\n",
        where="worker/process/test_child_not_trusted.py",
        by="test_a_result_that_could_not_be_stored_ends_the_job_and_is_not_run_again",
    ),
    Mutant(
        name="a suspect runs among the others",
        file="worker/runner.py",
        old="(task.process is not None or job.losses) and",
        new="task.process is not None and",
        where="worker/process/test_process_suspects.py",
        by="test_a_suspect_runs_in_a_child_that_sees_what_the_worker_sees",
    ),
    Mutant(
        name="the session of a dead child lives until its lease is over",
        file="worker/supervisor/farewell.py",
        old="        await self._store.end_session(session)\n",
        new="",
        where=FAREWELL,
        by="test_the_session_of_a_dead_child_is_over_at_once_and_its_jobs_are_decided[memory]",
    ),
    Mutant(
        name="what a last claim brought to a dead child waits for a rescuer",
        file="worker/supervisor/farewell.py",
        old="        await self._settle_all()  # a claim may have been on its way when the child died\n",
        new="",
        where=FAREWELL,
        by="test_what_a_last_claim_still_brought_to_the_dead_child_is_taken_back_too",
    ),
    Mutant(
        name="all jobs of a child pay for the one that ran too long",
        file="worker/supervisor/verdict.py",
        old="    if job.id in report.culprits and report.ended_for is Ending.OVERRUN:",
        new="    if report.ended_for is Ending.OVERRUN:",
        where="worker/supervisor/test_judging.py",
        by="test_where_the_supervisor_ended_the_child_only_the_guilty_job_pays[memory]",
    ),
    Mutant(
        name="a child that was asked from afar to go is replaced",
        file="worker/supervisor/posts.py",
        old="self.child is None and not self.closed and now",
        new="self.child is None and now",
        where="worker/supervisor/test_supervised_orders.py",
        by="test_of_two_children_the_other_goes_on_and_the_drained_one_is_not_replaced",
    ),
    Mutant(
        name="what the jobs of a dead child have started runs on",
        file="worker/supervisor/supervisor.py",
        old="        child.kill_group()  # what its jobs have started and left behind\n",
        new="",
        where=SUPERVISED,
        by="test_what_the_jobs_of_a_killed_child_had_started_is_ended_with_it",
    ),
)

MUTANTS = (*ONE_COMMIT, *SELF_FENCING, *ENDINGS, *PROCESSES)
