"""Every fault that Rota is tested against: what is done, what must hold, and the tests that show it.

Tiers: *every* runs with every test run and takes moments; *small* hurts real
processes and servers for some seconds, in `make test`; *long* is the same for
minutes and with other seeds, by `make chaos`. A number keeps its meaning for
ever, because reports and timelines use it; gaps are faults of parts that are not
built yet.
"""

# ruff: noqa: E501 - names of tests are sentences
from __future__ import annotations

from chaos.fault import fault as _fault

CHAOS = "tests/chaos/"
WORKER = "tests/worker/"
POSTGRES = "tests/stores/postgres/"

FAULTS = [
    _fault(
        1,
        "Workers and producers are killed (SIGKILL) at random instants, once a second.",
        "No job is lost or stuck; each second run is explained by a kill; jobs restart within a lease and a little.",
        small=CHAOS + "test_worker_kills.py::test_a_killed_workers_jobs_restart_elsewhere_within_twenty_seconds_at_default_settings",
        long=[
            CHAOS + "test_worker_kills.py::test_killing_workers_at_random_loses_no_job_and_runs_none_twice_without_a_reason",
            CHAOS + "test_worker_kills.py::test_a_killed_producer_leaves_each_job_whole_or_not_at_all",
            CHAOS + "test_one_commit.py::test_rows_of_handlers_are_booked_once_while_their_workers_are_killed_and_frozen",
        ],
    ),
    _fault(
        2,
        "A worker dies between two steps: after its claim and before a start; after an end and before that is written; "
        "after it is written and before the answer.",
        "The job runs again or has ended, never both; nothing waits longer than a lease.",
        small=CHAOS + "test_falls.py::test_the_very_job_at_whose_step_the_worker_dies_ends_once",
        long=CHAOS + "test_falls.py::test_a_worker_that_dies_between_claim_start_end_and_answer_loses_no_job",
    ),
    _fault(
        3,
        "A worker stands still (SIGSTOP) past its lease while others run its jobs; then it goes on.",
        "Whatever it still writes changes nothing; its handlers are stopped.",
        every=WORKER + "test_worker_sessions.py::test_a_worker_that_wakes_too_late_changes_nothing_of_a_job_that_was_given_away",
        long=CHAOS + "test_frozen_workers.py::test_a_worker_that_wakes_up_after_its_lease_changes_nothing",
    ),
    _fault(
        4,
        "The supervisor is killed while its children work.",
        "Its children are gone at once, and others take their jobs.",
        small=WORKER + "supervisor/test_supervised_deaths.py::test_when_the_supervisor_is_killed_its_children_are_gone_at_once_and_others_take_the_jobs",
        long=CHAOS + "test_supervised_kills.py::test_killing_children_and_supervisors_loses_no_job_and_leaves_no_process_behind",
    ),
    _fault(
        5,
        "A handler crashes its process: a segmentation fault, an abort, a kill.",
        "One process dies, once; jobs beside it lose no attempt; the guilty one is dead after three, with a report.",
        every=WORKER + "process/test_process_deaths.py::test_a_child_s_death_ends_only_its_job_with_a_report",
        small=CHAOS + "test_poison.py::test_a_poison_job_kills_one_worker_and_then_only_itself",
    ),
    _fault(
        6,
        "A handler eats memory.",
        "Its child is ended or replaced, the worker lives on, and a job that does so each time is dead in the end.",
        every=WORKER + "process/test_process_deaths.py::test_limits_of_memory_processor_and_files_are_kept",
        small=WORKER + "supervisor/test_supervised_stopping.py::test_a_child_that_uses_too_much_memory_is_replaced_while_it_finishes_its_jobs",
    ),
    _fault(
        7,
        "A handler starts processes that outlive it, by a double fork or in sessions of their own.",
        "All of them are gone when its job ends.",
        every=WORKER + "process/test_process_deaths.py::test_what_a_handler_starts_ends_with_its_job",
    ),
    _fault(
        8,
        "Payloads and results that cannot be stored or read: no JSON, unknown tasks, zero characters, halves of "
        "characters, numbers of a thousand digits, a thousand nested lists.",
        "Refused at the enqueue, or dead with a reason; neighbours in the same statement are not harmed.",
        every=[
            CHAOS + "test_poisoned_payloads.py::test_payloads_and_results_that_cannot_be_are_dead_with_a_reason_and_harm_no_neighbour",
            CHAOS + "test_poisoned_payloads.py::test_a_payload_that_postgresql_cannot_keep_is_refused_and_its_companions_are_stored",
            WORKER + "test_worker_outcomes.py::test_a_job_of_an_unknown_task_is_left_unharmed_for_a_worker_that_knows_it",
            "tests/app/test_payload_rules.py::test_what_json_or_a_database_cannot_keep_is_refused_with_its_place",
        ],
    ),
    _fault(
        9,
        "A coroutine blocks the event loop for longer than the lease.",
        "The lease is kept from another thread; the task is named in the log; others wait and none is lost.",
        every=WORKER + "test_worker_sessions.py::test_a_session_lives_as_long_as_it_is_beaten_even_while_a_handler_blocks_the_loop",
        long=CHAOS + "test_falls.py::test_a_handler_that_blocks_the_loop_past_the_lease_costs_time_and_no_job",
    ),
    _fault(
        10,
        "A handler holds Python's interpreter lock in C, so that no other thread of its process runs.",
        "The supervisor keeps the lease, and ends the job at its timeout and grace.",
        small=[
            WORKER + "supervisor/test_supervised_stuck.py::test_a_session_is_kept_alive_while_a_job_holds_the_interpreter_longer_than_the_lease",
            WORKER + "supervisor/test_supervised_stuck.py::test_a_job_that_cannot_be_stopped_ends_at_its_timeout_and_grace_while_others_go_on",
        ],
    ),
    _fault(
        11,
        "A handler ignores that it is told to stop: a coroutine, a thread, a child process.",
        "Its job ends at timeout and grace, and its slot is free again.",
        every=[
            WORKER + "test_worker_timeouts.py::test_a_handler_that_does_not_stop_is_left_behind_and_its_late_end_changes_nothing",
            WORKER + "process/test_process_deaths.py::test_a_plain_function_that_will_not_stop_ends_at_its_timeout_and_grace",
            WORKER + "process/test_process_deaths.py::test_a_coroutine_that_will_not_stop_ends_at_its_timeout_and_grace",
        ],
    ),
    _fault(
        12,
        "A worker is told to stop (SIGTERM) with long jobs, twice, and in the middle of a claim.",
        "What has not begun goes back uncounted; beats go on; it is gone within its grace.",
        every=WORKER + "test_worker_stopping.py::test_beats_go_on_while_a_stop_waits_for_its_jobs",
        small=[
            CHAOS + "test_falls.py::test_a_worker_told_to_stop_while_a_claim_is_under_way_gives_its_jobs_back_uncounted",
            WORKER + "supervisor/test_supervised_stopping.py::test_the_first_signal_lets_jobs_finish_and_the_second_hands_them_back_at_once",
        ],
        long=CHAOS + "test_worker_kills.py::test_a_rolling_deploy_loses_no_job_and_uses_up_no_attempt",
    ),
    _fault(
        13,
        "The server ends random connections five times a second, or all of them at once.",
        "No worker exits, no job is lost, none runs twice.",
        long=[
            CHAOS + "test_lost_backends.py::test_connections_that_end_at_any_moment_cost_no_job_and_no_second_run",
            CHAOS + "test_storms.py::test_a_server_that_throws_everybody_out_again_and_again_costs_nothing_but_time",
        ],
    ),
    _fault(
        14,
        "The server is stopped hard, and comes back after some seconds.",
        "No worker exits, nothing acknowledged is lost, and a refused enqueue is told.",
        long=CHAOS + "test_server_stops.py::test_a_server_that_stops_hard_costs_no_worker_and_no_job",
    ),
    _fault(
        15,
        "A process of the server is killed, so that it throws everybody out and recovers.",
        "The same.",
        long=CHAOS + "test_server_stops.py::test_a_server_that_recovers_from_a_killed_process_costs_no_worker_and_no_job",
    ),
    _fault(
        16,
        "A connection is cut after the server has committed, before its answer.",
        "A repeat is harmless, a lost claim is recovered at once, and nothing is stored twice.",
        every=[
            CHAOS + "test_lost_answers.py::test_a_claim_whose_answer_was_lost_is_recovered_at_once",
            CHAOS + "test_lost_answers.py::test_a_settle_whose_answer_was_lost_is_answered_already",
            CHAOS + "test_lost_answers.py::test_an_enqueue_repeated_after_its_job_has_ended_does_not_run_it_again",
            CHAOS + "test_one_commit.py::test_a_commit_whose_answer_was_lost_is_known_by_asking",
        ],
        long=[
            CHAOS + "test_lost_answers.py::test_an_enqueue_cut_around_its_commit_is_stored_once_while_a_worker_drains",
            CHAOS + "test_one_commit.py::test_rows_of_handlers_are_booked_once_while_connections_are_cut_around_commits",
        ],
    ),
    _fault(
        17,
        "A connection is cut just before the server would commit.",
        "Nothing is stored, and the repeat stores it once.",
        every=CHAOS + "test_lost_answers.py::test_an_exchange_whose_answer_was_lost_settles_once_and_claims_once",
        long=CHAOS + "test_lost_answers.py::test_claims_and_settles_cut_around_their_commit_run_no_job_twice",
    ),
    _fault(
        18,
        "The network swallows everything and tells nobody.",
        "Calls give up by themselves; jobs flow within 10 s after it healed; a worker that is cut off past its lease has "
        "stopped before others begin.",
        every=[
            CHAOS + "test_bad_network.py::test_a_call_that_is_given_up_on_a_silent_connection_returns_soon_and_the_next_one_works",
            CHAOS + "test_bad_network.py::test_connections_that_fall_silent_while_they_are_made_stand_in_nobodys_way",
        ],
        small=CHAOS + "test_bad_network.py::test_a_worker_that_is_cut_off_past_its_lease_stops_before_others_begin",
        long=CHAOS + "test_bad_network.py::test_jobs_flow_again_soon_after_a_network_that_swallowed_everything_has_healed",
    ),
    _fault(
        19,
        "Only the listening connection is half-open: no hint arrives, and no error.",
        "Its own ping finds that; meanwhile polls find new jobs.",
        every=[
            POSTGRES + "test_hearing.py::test_a_connection_that_fell_silent_is_noticed_by_its_own_ping_and_replaced",
            CHAOS + "test_bad_network.py::test_a_listener_whose_connection_falls_silent_before_it_listens_begins_anew",
        ],
        long=CHAOS + "test_bad_network.py::test_a_listener_that_went_silent_costs_a_poll_and_is_replaced",
    ),
    _fault(
        20,
        "The network delays questions and answers by up to two seconds, and lets a few bytes through at a time.",
        "No lease is lost while beats arrive.",
        long=CHAOS + "test_bad_network.py::test_a_slow_network_costs_time_and_no_lease",
    ),
    _fault(
        21,
        "The server takes no more connections.",
        "Who has one works on, and every worker has one for its heartbeat.",
        every=POSTGRES + "test_server_faults.py::test_a_crowded_server_is_no_riddle",
        long=CHAOS + "test_crowded_server.py::test_workers_beat_and_work_on_while_the_server_takes_no_new_connection",
    ),
    _fault(
        22,
        "The primary is lost and its standby promoted, with and without waiting for copies; nobody tells the old one.",
        "With waiting nothing is lost; without, only what was never copied; a read-only or stale server is never a yes.",
        small=[
            CHAOS + "test_failover.py::test_a_stale_primary_acknowledges_nothing_after_its_standby_was_promoted",
            CHAOS + "test_failover.py::test_a_connection_to_a_read_only_server_is_given_up_until_the_primary_is_found",
            CHAOS + "test_replica.py::test_pages_of_a_standby_show_everything_and_offer_changes_once_it_is_promoted",
            CHAOS + "test_replica.py::test_commands_read_a_standby_and_say_in_one_line_why_they_cannot_change_it",
            CHAOS + "test_replica.py::test_a_standby_says_what_it_is_at_once_and_takes_changes_when_it_is_promoted",
        ],
        long=CHAOS + "test_failover.py::test_workers_and_producers_follow_the_primary_and_only_what_was_never_copied_is_gone",
    ),
    _fault(
        23,
        "The disk is full, where the data are or where the server's log is.",
        "Producers are told, workers wait, and all goes on by itself when there is space.",
        every=POSTGRES + "test_full_disk.py::test_what_was_acknowledged_is_kept_and_the_rest_is_taken_when_there_is_space",
        small=CHAOS + "test_no_space.py::test_a_server_that_stops_because_its_log_is_full_costs_no_job_and_no_worker",
        long=CHAOS + "test_no_space.py::test_a_full_disk_is_told_to_producers_and_ridden_out_by_workers",
    ),
    _fault(
        24,
        "An old transaction keeps every dead row from being cleaned up.",
        "A claim costs at most three times what it costs without; `rota doctor` names the process.",
        long=CHAOS + "test_heavy_tables.py::test_claims_stay_light_while_an_old_snapshot_keeps_every_dead_row",
    ),
    _fault(
        25,
        "A million jobs wait, and a million have finished.",
        "A claim costs what it costs in an empty table, 99 of 100 below 20 ms; a page of jobs is quick; no statement walks a whole table.",
        every=POSTGRES + "test_plans.py::test_nothing_that_runs_all_day_walks_the_whole_table",
        long=CHAOS + "test_heavy_tables.py::test_a_claim_beside_a_long_backlog_and_much_history_is_as_light_as_beside_none",
    ),
    _fault(
        26,
        "The planner is told lies about the tables.",
        "A claim for n jobs never takes more than n.",
        every=POSTGRES + "test_plans.py::test_a_claim_never_takes_more_than_its_limit_under_poisoned_statistics",
        small=CHAOS + "test_misled_planner.py::test_a_claim_takes_no_more_than_asked_for_whatever_the_planner_believes",
    ),
    _fault(
        27,
        "The server refuses again and again: deadlocks, conflicts of serializable transactions, lock and statement "
        "timeouts, cancelled statements.",
        "Everything is repeated until it lands once.",
        every=POSTGRES + "test_key_races.py::test_batches_with_the_same_keys_in_opposite_orders_do_not_deadlock",
        long=CHAOS + "test_storms.py::test_what_the_server_refuses_is_repeated_until_it_lands_once",
    ),
    _fault(
        28,
        "The server's queue of notices is full, because somebody listens and sits in a transaction.",
        "No enqueue and no cancel fails for it; workers poll; `rota doctor` says so.",
        every=CHAOS + "test_full_notices.py::test_every_way_to_enqueue_and_a_cancel_work_while_no_notice_can_be_sent",
        long=CHAOS + "test_full_notices.py::test_workers_go_on_by_polling_while_no_notice_can_be_sent",
    ),
    _fault(
        29,
        "PgBouncer in transaction mode stands before the server.",
        "Every promise holds; without an address for listening, jobs are found by polling.",
        small=POSTGRES + "test_pooler.py::test_a_job_goes_all_the_way",
        long=CHAOS + "test_pooler_restarts.py::test_a_pooler_that_is_restarted_and_paused_costs_no_job_and_no_second_run",
    ),
    _fault(
        30,
        "PgBouncer is restarted, paused, and throws its clients out.",
        "As with the server's own connections: nothing is lost, nothing runs twice.",
        long=CHAOS + "test_pooler_restarts.py::test_a_pooler_that_is_restarted_and_paused_costs_no_job_and_no_second_run",
    ),
    _fault(
        31,
        "Clocks of workers and producers are wrong by minutes to a day, and are set back and forward meanwhile.",
        "Starts, leases and retries follow the store's clock, time limits a clock that nobody can set.",
        every=WORKER + "test_worker_outcomes.py::test_a_retry_is_reckoned_by_the_stores_clock_whatever_this_machine_thinks",
        small=CHAOS + "test_wrong_clocks.py::test_a_clock_that_is_set_back_an_hour_and_then_forward_changes_nothing",
        long=CHAOS + "test_wrong_clocks.py::test_workers_and_producers_with_wrong_clocks_keep_all_promises",
    ),
    _fault(
        32,
        "Two schedulers look at the same ticks; they are killed, frozen and cut off while both changes of the clocks go by.",
        "Each tick becomes one job, and no other job comes of it.",
        every=POSTGRES + "test_schedule_races.py::test_a_tick_that_somebody_is_taking_is_left_to_him_and_not_waited_for",
        long=CHAOS + "test_ticks.py::test_two_schedulers_that_are_killed_take_every_tick_once_over_changes_of_the_clocks",
    ),
    _fault(
        33,
        "No scheduler lives while ticks go by.",
        "The schedule's policy decides once what is made good: nothing, the last tick, or all of them up to a cap.",
        every=WORKER + "test_scheduler.py::test_after_an_outage_the_policy_decides_once",
    ),
    _fault(
        34,
        "A hundred callers enqueue one key at the same moment, also while its holder ends.",
        "One job, and all callers get its id or hear of the conflict.",
        long=[
            CHAOS + "test_one_key.py::test_a_hundred_callers_of_one_key_in_four_processes_make_one_job_while_workers_finish_it",
            CHAOS + "test_one_key.py::test_a_unique_key_keeps_others_out_also_at_the_moment_its_holder_ends",
        ],
    ),
    _fault(
        35,
        "A job is completed, failed, rescued and cancelled at the same moment.",
        "One end, and all hear the truth.",
        long=CHAOS + "test_races.py::test_every_way_to_end_a_job_at_once_has_one_winner_and_all_hear_the_truth",
    ),
    _fault(
        36,
        "A dead letter is reprocessed twice, discarded and run again in place at the same moment.",
        "One of them happens, with one new job at most; the audit tells of each step once.",
        every=[
            POSTGRES + "test_review_races.py::test_a_second_click_waits_for_the_first_and_gets_its_job",
            POSTGRES + "test_review_races.py::test_a_click_whose_transaction_fell_over_leaves_nothing",
            POSTGRES + "test_review_races.py::test_a_discard_that_waited_for_a_reprocess_is_fenced",
        ],
        long=CHAOS + "test_dead_letter_races.py::test_clicks_at_the_same_moment_make_one_job_or_none_and_are_told_once",
    ),
    _fault(
        42,
        "Workers of two versions of the code side by side; the older ones do not know a task.",
        "Its jobs wait unharmed for a worker that knows it.",
        every=POSTGRES + "test_renamed_task.py::test_a_worker_with_the_new_name_leaves_them_and_the_doctor_lists_them",
        long=CHAOS + "test_mixed_ages.py::test_jobs_of_a_task_that_only_newer_workers_know_wait_for_them_unharmed",
    ),
    _fault(
        43,
        "The schema is migrated under load, behind a long reader; a migrator is killed in the middle.",
        "Nobody waits longer than the migration's patience of two seconds; a killed one leaves nothing.",
        every=POSTGRES + "test_migrating.py::test_a_locked_table_makes_the_migrator_step_back_and_try_again",
        long=CHAOS + "test_mixed_ages.py::test_a_migration_under_load_keeps_nobody_waiting_and_one_that_is_killed_leaves_nothing",
    ),
    _fault(
        44,
        "A million old rows are purged while workers claim.",
        "It goes in batches, and nobody waits for it.",
        every=POSTGRES + "test_janitor.py::test_a_retention_that_ends_within_a_day_is_kept_by_deleting_in_batches",
        long=CHAOS + "test_heavy_tables.py::test_a_large_purge_goes_in_batches_and_nobody_waits_for_it",
    ),
    _fault(
        45,
        "Fifty idle workers hear of one job, or of a thousand.",
        "Each asks once and no more; a thousand are shared by all.",
        small=[
            CHAOS + "test_herd.py::test_fifty_idle_workers_ask_once_each_for_one_job_and_no_more",
            CHAOS + "test_races.py::test_fifty_workers_share_a_thousand_jobs_and_every_one_gets_its_part",
        ],
    ),
    _fault(
        48,
        "A worker comes back with the same host and process id while its old lease lasts.",
        "It adopts nothing of its former life.",
        every=CHAOS + "test_same_name.py::test_a_worker_that_comes_back_under_the_same_name_adopts_nothing_of_its_former_life",
    ),
    _fault(
        49,
        "Transaction numbers run out sooner or later.",
        "A job costs at most a tenth of one.",
        small=CHAOS + "test_heavy_tables.py::test_a_worker_burns_few_transaction_numbers",
    ),
    _fault(
        50,
        "One of a batch of ends cannot be stored, and the connection is cut at any step of finding out which.",
        "It alone is dead with the reason; the others are completed once.",
        every=CHAOS + "test_poisoned_payloads.py::test_a_batch_with_one_bad_result_that_is_cut_at_any_step_costs_only_the_bad_one",
    ),
    _fault(
        51,
        "A job becomes visible long after later ones, because its transaction was committed late.",
        "It is claimed all the same.",
        every=POSTGRES + "test_held_races.py::test_a_job_committed_late_below_the_floor_is_still_claimed",
        long=CHAOS + "test_transactions.py::test_jobs_that_become_visible_long_after_later_ones_are_not_passed_over",
    ),
    _fault(
        52,
        "The business transaction around an enqueue is rolled back, or its process dies around the commit.",
        "The job is there if and only if the business is; a lost wake-up costs a poll.",
        small=[
            CHAOS + "test_transactions.py::test_a_crash_around_the_commit_leaves_the_order_with_its_job_or_neither",
            CHAOS + "test_transactions.py::test_a_job_whose_wake_up_was_never_sent_is_found_by_the_poll",
        ],
        long=CHAOS + "test_transactions.py::test_jobs_commit_and_roll_back_with_their_business_and_never_come_before_it",
    ),
]  # fmt: skip

MIXED = CHAOS + "test_mixed.py::test_all_faults_at_once_break_no_promise"
"""Many of them at once, by chance of one seed."""
