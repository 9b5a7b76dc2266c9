"""Mutants of the pure rules, of schedules, and of the memory store, which is the model of the others."""

from __future__ import annotations

from mutant import Mutant

TICKS = "stores/postgres/migrations/0003_schedules.sql"
DECIDE = "core/test_decide.py"
SUSPECTS = "core/test_suspects.py"
TIMES = "core/test_schedule_times.py"
SCHEDULES = "conformance/test_schedules.py"

RULES = (
    Mutant(
        name="any living worker is said to be able to run a job",
        file="_core/explain.py",
        old="if any(worker.serves(job) for worker in workers):",
        new="if any(workers):",
        where="core/test_explain.py",
        by="test_a_queue_that_no_lane_serves_is_named",
    ),
    Mutant(
        name="payloads that nobody could try are taken to be fine",
        file="_core/deploy.py",
        old="elif not group.sample:",
        new="elif False:",
        where="core/test_deploy_rules.py",
        by="test_payloads_that_could_not_be_tried_are_unknown_and_not_fine",
    ),
    Mutant(
        name="one attempt more than allowed",
        file="_core/retry.py",
        old="return attempt < max_attempts",
        new="return attempt <= max_attempts",
        where=DECIDE,
        by="test_the_last_attempt_that_fails_kills_the_job",
    ),
    Mutant(
        name="the first pause is already doubled",
        file="_core/retry.py",
        old="min(max(attempt, 1) - 1, 60)",
        new="min(max(attempt, 1), 60)",
        where="core/test_retry_policy.py",
        by="test_doc20_pauses_double_from_two_seconds",
    ),
    Mutant(
        name="work that must not happen twice is run again after a crash",
        file="_core/retry.py",
        old="and not self.lost:",
        new="and False:",
        where=DECIDE,
        by="test_work_that_must_not_happen_twice_dies_with_its_worker",
    ),
    Mutant(
        name="a job that is handed back has used up an attempt",
        file="_core/outcome.py",
        old='                "hand back",\n                attempt=max(job.attempt - 1, 0),',
        new='                "hand back",\n                attempt=job.attempt,',
        where=DECIDE,
        by="test_a_job_handed_back_keeps_its_attempts_and_counts_no_snooze",
    ),
    Mutant(
        name="a lost job that was to be cancelled is run again",
        file="_core/outcome.py",
        old="        case Lost(reason):\n            if job.cancel_requested_at is not None:",
        new="        case Lost(reason):\n            if False:",
        where=DECIDE,
        by="test_a_lost_job_that_was_to_be_cancelled_is_cancelled",
    ),
    Mutant(
        name="a poison job kills one process more than allowed",
        file="_core/outcome.py",
        old="if losses < retry.max_losses:",
        new="if losses <= retry.max_losses:",
        where=SUSPECTS,
        by="test_a_poison_job_is_dead_at_its_third_loss",
    ),
    Mutant(
        name="a bystander of a crash loses an attempt",
        file="_core/outcome.py",
        old='    attempt = max(job.attempt - 1, 0)\n    return Transition(job, State.PENDING, "suspect"',
        new='    attempt = job.attempt\n    return Transition(job, State.PENDING, "suspect"',
        where=SUSPECTS,
        by="test_who_shared_a_process_that_died_is_a_suspect_and_loses_no_attempt",
    ),
    Mutant(
        name="an effect key changes with every attempt",
        file="_core/effects.py",
        old="root = _carried(job) or str(job.id)",
        new='root = _carried(job) or f"{job.id}:{job.attempt}"',
        where="core/test_effect_keys.py",
        by="test_the_key_is_the_same_at_every_attempt_and_after_a_retry_by_hand",
    ),
    Mutant(
        name="the size of a payload is counted in letters",
        file="_core/payload.py",
        old='size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))',
        new="size = len(text)",
        where="core/test_payload_faults.py",
        by="test_bytes_are_counted_not_letters",
    ),
    Mutant(
        name="results have no limit of their own",
        file="task.py",
        old="trouble = problem(text, limit=self._limits[2])",
        new="trouble = problem(text)",
        where="app/test_payload_rules.py",
        by="test_a_result_above_its_limit_is_refused",
    ),
)

SCHEDULED = (
    Mutant(
        name="every second hour drifts when the clocks change",
        file="schedule_times.py",
        old='    if len(fields) != 5 or fields[1] == "*":',
        new='    if len(fields) != 5 or "*" in fields[1]:',
        where=TIMES,
        by="test_every_second_hour_keeps_to_the_clock_on_the_wall",
    ),
    Mutant(
        name="in an hour that comes twice a tick is told again",
        file="schedule_times.py",
        old="            if tick > last:\n",
        new="            if local:\n",
        where=TIMES,
        by="test_from_within_the_second_coming_of_an_hour_no_tick_of_its_first_is_told_again",
    ),
    Mutant(
        name="missed ticks are made good although they are to be skipped",
        file="_core/schedule_plan.py",
        old="    elif spec.misfire is Misfire.LAST and not on_time:",
        new="    elif not on_time:",
        where="core/test_schedule_plan.py",
        by="test_after_an_outage_the_misfire_policy_says_what_runs",
    ),
    Mutant(
        name="of very many ticks only the first round is ever enqueued",
        file="_core/schedule_plan.py",
        old="chosen[AT_ONCE - 1], now, bool(missed)",
        new="newest[-1], now, bool(missed)",
        where="core/test_schedule_plan.py",
        by="test_a_great_many_ticks_are_taken_a_round_at_a_time",
    ),
    Mutant(
        name="the key of the ticks lets a second job in",
        file=TICKS,
        old="            WHERE t.job_id IS NULL;\n",
        new="            ;\n",
        where="stores/postgres/test_schedule_races.py",
        by="test_the_key_of_the_ticks_decides_even_where_no_lock_does",
    ),
    Mutant(
        name="a tick is enqueued by what an older schedule said",
        file=TICKS,
        old=" AND s.version = (firing ->> 'version')::integer",
        new="",
        where=SCHEDULES,
        by="test_what_was_computed_from_an_older_schedule_is_not_enqueued[postgres-edited]",
    ),
    Mutant(
        name="a slower scheduler makes good what the policy passed over",
        file=TICKS,
        old="ELSIF NOT by_hand AND of_tick <= mine.cursor_at THEN",
        new="ELSIF false THEN",
        where=SCHEDULES,
        by="test_a_tick_that_was_passed_over_is_not_enqueued_by_a_slower_scheduler[postgres]",
    ),
)

IN_MEMORY = (
    Mutant(
        name="in memory a job is settled whatever its version",
        file="stores/memory/settling.py",
        old="    if job.version == wanted.version and not job.state.terminal:",
        new="    if not job.state.terminal:",
        where="conformance/test_ownership.py",
        by="test_a_worker_that_lost_its_job_cannot_settle_it[memory-complete]",
    ),
    Mutant(
        name="in memory a lease never ends by itself",
        file="stores/memory/sessions.py",
        old=" and session.lease_until > now",
        new="",
        where="conformance/test_claim_ways.py",
        by="test_by_no_way_does_an_expired_session_get_work[memory-claim]",
    ),
    Mutant(
        name="in memory a job that comes back does not take its unique key again",
        file="stores/memory/enqueueing.py",
        old="    book.keys[name] = Holder(job.id, scope",
        new="    _ = Holder(job.id, scope",
        where="conformance/test_superseding.py",
        by="test_a_job_that_comes_back_takes_its_key_from_a_successor_that_has_ended[memory-retry]",
    ),
    Mutant(
        name="in memory a late operator is obeyed",
        file="stores/memory/changing.py",
        old="    if job.version != wanted.version or not _allowed(job, change):",
        new="    if not _allowed(job, change):",
        where="conformance/test_late_operators.py",
        by="test_a_request_to_stop_an_older_claim_does_not_stop_the_newer_one[memory]",
    ),
    Mutant(
        name="in memory one claim takes two jobs of one gate",
        file="stores/memory/claiming.py",
        old="        busy.add(job.gate)\n",
        new="",
        where="conformance/test_gates.py",
        by="test_of_the_jobs_with_one_gate_one_runs_at_a_time[memory]",
    ),
)

MUTANTS = (*RULES, *SCHEDULED, *IN_MEMORY)
