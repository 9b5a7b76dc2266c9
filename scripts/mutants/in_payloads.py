"""Mutants of payload rules, of the logs of jobs, and of back-pressure."""

from __future__ import annotations

from mutant import Mutant

MIGRATION = "stores/postgres/migrations/0007_payload_rules.sql"
STRICT = "app/test_strict_rules.py"
SQL = "stores/postgres/test_sql_payload_rules.py"

MUTANTS = (
    Mutant(
        name="a job without a tenant passes the rules",
        file="_core/payload_rules.py",
        old="if fault is not None and not (by_schedule and taken[name] is None):",
        new="if fault is not None and taken[name] is not None:",
        where=STRICT,
        by="test_a_job_that_lacks_one_of_the_three_is_refused_by_name",
    ),
    Mutant(
        name="secrets are looked for at the top only",
        file="_core/sensitive.py",
        old="yield from findings(inner, allow=allow, path=here, under=kind_of_name(str(name)) or under)",
        new="yield from () if path else findings(inner, allow=allow, path=here, under=kind_of_name(str(name)))",
        where="core/test_sensitive.py",
        by="test_secrets_and_content_are_found_by_name_and_by_looks",
    ),
    Mutant(
        name="a card number needs no right sum",
        file="_core/sensitive.py",
        old="for value in doubled) % 10 == 0",
        new="for value in doubled) % 10 >= 0",
        where="core/test_sensitive.py",
        by="test_card_numbers_are_told_by_brand_and_sum",
    ),
    Mutant(
        name="SQL does not look at the content of a payload",
        file=MIGRATION,
        old="IF (policy ->> 'refuse')::boolean THEN",
        new="IF (policy ->> 'refuse')::boolean AND false THEN",
        where=SQL,
        by="test_what_the_code_refuses_sql_refuses",
    ),
    Mutant(
        name="the table's constraint lets a job without a key in",
        file=MIGRATION,
        old="AND key IS NOT NULL '",
        new="'",
        where=SQL,
        by="test_the_table_itself_can_be_told_to_refuse_jobs_that_lack_them",
    ),
    Mutant(
        name="an error quotes a secret argument",
        file="shape.py",
        old="shown = redacted_text(repr(redacted(value, name=name)))",
        new="shown = repr(value)",
        where=STRICT,
        by="test_an_error_never_quotes_a_secret",
    ),
    Mutant(
        name="a late, older tail replaces a newer one",
        file="stores/postgres/sql/keep_logs.sql",
        old="WHERE excluded.written >= kept.written",
        new="WHERE true",
        where="conformance/test_job_logs.py",
        by="test_a_later_tail_replaces_an_earlier_one_and_an_older_one_changes_nothing[postgres]",
    ),
    Mutant(
        name="lines of an attempt that lost its job are kept",
        file="worker/logbook.py",
        old="or job.ended or job.stop is Stop.LOST:",
        new="or job.ended:",
        where="worker/test_worker_logs.py",
        by="test_an_attempt_that_lost_its_job_is_not_heard_any_more",
    ),
    Mutant(
        name="a full queue takes one job more",
        file="_core/queue.py",
        old="total + sum(new.values()) > self.max_pending:",
        new="total + sum(new.values()) > self.max_pending + 1:",
        where="app/test_back_pressure.py",
        by="test_a_full_queue_takes_no_more_jobs_and_says_what_to_do",
    ),
)
