"""Mutants of the PostgreSQL store: fences, leases, keys, gates, and what is found again."""

from __future__ import annotations

from mutant import Mutant

SQL = "stores/postgres/sql"
FUNCTIONS = "stores/postgres/migrations/0010_retention.sql"
FENCE = "      AND job.version = (%(versions)s::integer[])[array_position(%(ids)s::uuid[], job.id)]\n"
LEASE = " AND s.lease_until > coalesce(%(now)s::timestamptz, now())"
OWNERSHIP = "conformance/test_ownership.py"
LEASES = "conformance/test_leases.py"
WAYS = "conformance/test_claim_ways.py"
GATES = "conformance/test_gates.py"
LATE = "conformance/test_late_operators.py"
SUPERSEDING = "conformance/test_superseding.py"
HELD = "stores/postgres/test_held_races.py"

FENCES = (
    Mutant(
        name="a job is completed by whoever says so, whatever its version",
        file=f"{SQL}/exchange.sql",
        old=FENCE,
        new="",
        where=OWNERSHIP,
        by="test_a_worker_that_lost_its_job_cannot_settle_it[postgres-complete]",
    ),
    Mutant(
        name="a job is put back on the list whatever its version",
        file=f"{SQL}/settle_waiting.sql",
        old=FENCE,
        new="",
        where=OWNERSHIP,
        by="test_a_worker_that_lost_its_job_cannot_settle_it[postgres-fail]",
    ),
    Mutant(
        name="a job is cancelled whatever its version",
        file=f"{SQL}/settle_ended.sql",
        old=FENCE,
        new="",
        where=OWNERSHIP,
        by="test_a_worker_that_lost_its_job_cannot_settle_it[postgres-cancel]",
    ),
    Mutant(
        name="a job dies whatever its version",
        file=f"{SQL}/settle_dead.sql",
        old=FENCE,
        new="",
        where="conformance/test_settling.py",
        by="test_a_claim_settled_one_way_cannot_be_settled_another_way[postgres-snooze]",
    ),
    Mutant(
        name="an owner that wakes up after a rescue is told that the rescue was its own word",
        file="stores/postgres/settle.py",
        old=" and noted == expected and state == transition.to",
        new=" and state == transition.to",
        where=OWNERSHIP,
        by="test_a_worker_whose_job_was_rescued_but_not_yet_taken_cannot_settle_it[postgres-fail]",
    ),
    Mutant(
        name="one result that cannot be stored costs its neighbours their answer",
        file="stores/postgres/settle.py",
        old="            if len(places) == 1:\n                refused.add",
        new="            if places:\n                refused.add",
        where="conformance/test_settling.py",
        by="test_one_result_that_cannot_be_stored_does_not_cost_the_others_their_answer[postgres-completed]",
    ),
    Mutant(
        name="a request to stop an older claim stops the newer one",
        file=f"{SQL}/request_cancel.sql",
        old=" AND job.version = %(version)s",
        new="",
        where=LATE,
        by="test_a_request_to_stop_an_older_claim_does_not_stop_the_newer_one[postgres]",
    ),
    Mutant(
        name="a retry of a dead job is taken whatever its version",
        file=f"{SQL}/revive.sql",
        old="DELETE FROM rota.dead_jobs AS job WHERE job.id = %(id)s AND job.version = %(version)s",
        new="DELETE FROM rota.dead_jobs AS job WHERE job.id = %(id)s",
        where=LATE,
        by="test_a_retry_of_an_older_end_does_not_bring_the_job_back[postgres-dead]",
    ),
    Mutant(
        name="a running job is deleted under its worker's hands",
        file=f"{SQL}/remove.sql",
        old=" AND job.state <> 'running'",
        new="",
        where="conformance/test_operator_changes.py",
        by="test_a_running_job_is_not_deleted_under_its_workers_hands[postgres]",
    ),
    Mutant(
        name="what an operator does leaves no audit row",
        file="stores/postgres/operators.py",
        old="                    await self._record(connection, told)\n",
        new="",
        where="conformance/test_operator_changes.py",
        by="test_the_audit_tells_who_did_what_when_and_why_newest_first[postgres]",
    ),
)

SESSIONS = (
    Mutant(
        name="a session past its lease still claims",
        file=f"{SQL}/claim.sql",
        old=LEASE,
        new="",
        where=WAYS,
        by="test_by_no_way_does_an_expired_session_get_work[postgres-claim]",
    ),
    Mutant(
        name="an ended session still claims in an exchange",
        file=f"{SQL}/exchange.sql",
        old="s.ended_at IS NULL AND ",
        new="",
        where=WAYS,
        by="test_by_no_way_does_an_ended_session_get_work[postgres-exchange]",
    ),
    Mutant(
        name="a session past its lease still enters gates",
        file=f"{SQL}/claim_gated.sql",
        old=LEASE,
        new="",
        where=WAYS,
        by="test_by_no_way_does_an_expired_session_get_work[postgres-gated claim]",
    ),
    Mutant(
        name="a late beat brings an expired session back",
        file=f"{SQL}/beat.sql",
        old=LEASE,
        new="",
        where=LEASES,
        by="test_a_session_is_over_at_the_very_end_of_its_lease[postgres]",
    ),
    Mutant(
        name="a beat brings an ended session back",
        file=f"{SQL}/beat.sql",
        old=" AND s.ended_at IS NULL",
        new="",
        where=LEASES,
        by="test_an_ended_session_gets_no_work_and_never_returns[postgres]",
    ),
    Mutant(
        name="an order is left for a worker that will never hear it",
        file=f"{SQL}/order_worker.sql",
        old="s.hears_orders AND ",
        new="",
        where="conformance/test_worker_orders.py",
        by="test_a_session_that_ended_expired_never_was_or_does_not_hear_gets_no_order[postgres]",
    ),
    Mutant(
        name="the rescuer ends sessions that still beat",
        file=f"{SQL}/end_expired.sql",
        old="    WHERE s.ended_at IS NULL AND s.lease_until <= coalesce(%(now)s::timestamptz, now())\n",
        new="    WHERE s.ended_at IS NULL\n",
        where=LEASES,
        by="test_a_long_job_of_a_beating_session_is_never_taken[postgres]",
    ),
    Mutant(
        name="the jobs of an ended session are never found lost",
        file=f"{SQL}/lost.sql",
        old=" AND s.ended_at IS NULL)",
        new=")",
        where=LEASES,
        by="test_the_jobs_of_the_living_are_not_lost[postgres]",
    ),
    Mutant(
        name="a job whose claim is still being answered counts as a stray",
        file=f"{SQL}/strays.sql",
        old="\n  AND job.claimed_at < coalesce(%(now)s::timestamptz, now()) - interval '3 seconds'",
        new="",
        where=OWNERSHIP,
        by="test_strays_are_told_only_when_asked_for_and_never_those_just_claimed[postgres]",
    ),
)

CLAIMS = (
    Mutant(
        name="a claim waits for jobs that another claim holds",
        file=f"{SQL}/claim.sql",
        old="FOR UPDATE OF c SKIP LOCKED",
        new="FOR UPDATE OF c",
        where=HELD,
        by="test_a_job_that_an_open_claim_holds_is_passed_over_and_not_waited_for",
    ),
    Mutant(
        name="an exchange takes jobs of every tenant",
        file=f"{SQL}/exchange.sql",
        old="                   AND (%(tenant)s::text IS NULL OR c.tenant = %(tenant)s::text)\n",
        new="",
        where=WAYS,
        by="test_every_way_keeps_to_its_tenant[postgres-exchange]",
    ),
    Mutant(
        name="behind a gate jobs of every task are taken",
        file=f"{SQL}/gate_candidates.sql",
        old="               AND (%(tasks)s::text[] IS NULL OR j.task = ANY (%(tasks)s::text[]))\n",
        new="",
        where=WAYS,
        by="test_every_way_keeps_to_its_tasks[postgres-gated claim]",
    ),
    Mutant(
        name="a job enters a gate in which another one runs",
        file=f"{SQL}/claim_gated.sql",
        old="line = 1 AND NOT busy",
        new="line = 1",
        where=GATES,
        by="test_a_job_enqueued_while_the_gate_is_busy_waits_too[postgres]",
    ),
    Mutant(
        name="two claims at once may enter the same gate",
        file=f"{SQL}/gate_candidates.sql",
        old="WHERE pg_try_advisory_xact_lock(hashtextextended(due.gate, 7091))",
        new="WHERE hashtextextended(due.gate, 7091) IS NOT NULL",
        where=HELD,
        by="test_a_gate_that_an_open_claim_holds_lets_nobody_else_in",
    ),
    Mutant(
        name="the floor of a pair lies on its first job, which is never found",
        file="stores/postgres/claim.py",
        old="UUID(int=max(id_.int - 1, 0))",
        new="id_",
        where="conformance/test_claim_order.py",
        by="test_a_claim_never_answers_with_more_than_its_limit[postgres]",
    ),
    Mutant(
        name="a hint that comes while a claim is under way is forgotten with it",
        file="stores/postgres/claim.py",
        old="        if known.get(pair, event) <= event:\n",
        new="        if pair in known:\n",
        where=HELD,
        by="test_a_hint_that_comes_while_a_claim_is_under_way_is_not_forgotten_with_it",
    ),
    Mutant(
        name="a listener that was away does not say that it may have missed something",
        file="stores/postgres/listen.py",
        old="        on_hint(ResyncHint())\n",
        new="",
        where="conformance/test_store_hints.py",
        by="test_a_listener_hears_first_that_it_may_have_missed_something[postgres]",
    ),
    Mutant(
        name="of a lost answer more is found than the claim had taken",
        file=f"{SQL}/recover_claim.sql",
        old=" AND job.claim_no = %(claim_no)s",
        new="",
        where="chaos/test_lost_answers.py",
        by="test_an_exchange_whose_answer_was_lost_settles_once_and_claims_once[Cut.BEFORE]",
    ),
    Mutant(
        name="a claim whose answer was lost is not looked for",
        file="stores/postgres/settle.py",
        old="            if claim and repeated:\n",
        new="            if claim and not claim:\n",
        where="chaos/test_lost_answers.py",
        by="test_a_claim_whose_answer_was_lost_is_recovered_at_once[Cut.AFTER]",
    ),
)

KEYS = (
    Mutant(
        name="a job that comes back does not take its unique key again",
        file="stores/postgres/settle.py",
        old="                await self.keys.take_key(connection, job)\n",
        new="",
        where=SUPERSEDING,
        by="test_a_job_that_comes_back_takes_its_key_from_a_successor_that_has_ended[postgres-retry]",
    ),
    Mutant(
        name="an ended job that is retried does not take its unique key again",
        file="stores/postgres/operators.py",
        old="            await self._settler.keys.take_key(connection, job)\n",
        new="",
        where=SUPERSEDING,
        by="test_an_ended_job_that_is_retried_takes_its_key_from_a_successor_that_has_ended[postgres-started]",
    ),
    Mutant(
        name="a retry waits for a key as long as somebody's transaction is open",
        file="stores/postgres/settle.py",
        old="            if patience is not None:\n",
        new="            if patience is None:\n",
        where="stores/postgres/test_key_races.py",
        by="test_keys_that_open_transactions_hold_keep_neither_other_ends_nor_new_jobs_waiting",
    ),
    Mutant(
        name="an idempotency key is forgotten while its job still waits",
        file=FUNCTIONS,
        old="held.until > moment OR EXISTS (SELECT FROM rota.jobs j WHERE j.id = held.job_id)",
        new="held.until > moment",
        where="conformance/test_idempotency_keys.py",
        by="test_a_key_outlives_its_window_as_long_as_its_job_is_unfinished[postgres]",
    ),
    Mutant(
        name="a worker starts the holder of a unique key before the duplicate is committed",
        file=FUNCTIONS,
        old="AND j.state IN ('pending', 'blocked', 'held') FOR UPDATE;",
        new="AND j.state IN ('pending', 'blocked', 'held');",
        where="stores/postgres/test_key_races.py",
        by="test_the_holder_of_a_unique_key_does_not_start_before_the_duplicate_commits",
    ),
    Mutant(
        name="an enqueue that is repeated after its job has finished stores it again",
        file=f"{SQL}/undo_repeated.sql",
        old="EXISTS (SELECT FROM rota.finished_jobs AS finished WHERE finished.id = job.id)",
        new="false",
        where="conformance/test_storing.py",
        by="test_an_enqueue_repeated_after_its_job_ended_changes_nothing[postgres-completed]",
    ),
)

CONNECTIONS = (
    Mutant(
        name="after a silence every other silent connection is tried, too",
        file="stores/postgres/connections.py",
        old="            if connection.heard >= self._silence:\n",
        new="            if connection.heard >= 0:\n",
        where="chaos/test_bad_network.py",
        by="test_one_silence_costs_one_try_however_many_connections_have_fallen_silent",
    ),
    Mutant(
        name="a swallowed enqueue is an error at once, and not asked again",
        file="stores/postgres/connections.py",
        old="REPEAT_SECONDS = 8.0\n",
        new="REPEAT_SECONDS = 5.0\n",
        where="chaos/test_bad_network.py",
        by="test_an_enqueue_that_the_network_swallowed_is_repeated_and_lands_once",
    ),
    Mutant(
        name="a hand of the pool takes the end of its event loop for a failed connection",
        file="stores/postgres/connections.py",
        old="from rota.stores.postgres.pool import EndingPool\n",
        new="from psycopg_pool import AsyncConnectionPool as EndingPool\n",
        where="stores/postgres/test_event_loops.py",
        by="test_a_script_that_fails_while_its_calls_are_under_way_ends[0.003]",
    ),
)

MUTANTS = (*FENCES, *SESSIONS, *CLAIMS, *KEYS, *CONNECTIONS)
