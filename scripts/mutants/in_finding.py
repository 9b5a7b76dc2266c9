"""Mutants of finding jobs, and of what other systems ask over HTTP: whose jobs, which ones, and who may."""

from __future__ import annotations

from mutant import Mutant

MUTANTS = (
    Mutant(
        name="the name of an argument in a filter becomes part of the query",
        file="stores/postgres/finding.py",
        old='    return ".".join(json.dumps(name) for name in path)\n',
        new='    return ".".join(f\'"{name}"\' for name in path)\n',
        where="stores/postgres/test_wide_searches.py",
        by="test_arguments_are_one_predicate_in_which_nothing_can_break_out",
    ),
    Mutant(
        name="a search that finds too much says that there is nothing",
        file="stores/postgres/finding.py",
        old="                raise SearchTooWide(LOOKING_SECONDS) from error\n",
        new="                return []\n",
        where="stores/postgres/test_wide_searches.py",
        by="test_whatever_takes_too_long_is_given_up_once_with_what_to_do",
    ),
    Mutant(
        name="a search takes a connection without waiting for its turn",
        file="stores/postgres/finding.py",
        old="    if wanted.ids:\n",
        new="    if wanted:\n",
        where="stores/postgres/test_wide_searches.py",
        by="test_many_wide_searches_leave_connections_for_everybody_else",
    ),
    Mutant(
        name="a search that is repeated has all of its time again",
        file="stores/postgres/finding.py",
        old="left = LOOKING_SECONDS - spent if spent < LOOKING_SECONDS else LOOKING_SECONDS",
        new="left = LOOKING_SECONDS",
        where="stores/postgres/test_wide_searches.py",
        by="test_a_search_that_waited_for_its_connection_looks_no_longer_than_others",
    ),
    Mutant(
        name="whoever is not shown an argument may guess it by searching",
        file="admin/reads.py",
        old="if argument.hidden and not sees_hidden:",
        new="if False:",
        where="web/test_hidden_values.py",
        by="test_a_search_for_a_hidden_value_is_refused_and_so_is_no_way_to_guess_it",
    ),
    Mutant(
        name="an argument that does not fit is quoted though it is hidden",
        file="_core/schema.py",
        old="json.dumps(redacted(value, name=name), ensure_ascii=False)",
        new="json.dumps(value, ensure_ascii=False)",
        where="web/test_hidden_values.py",
        by="test_an_edit_that_does_not_fit_tells_nothing_of_arguments_that_the_caller_may_not_see",
    ),
    Mutant(
        name="error: finds jobs that got over it",
        file="stores/postgres/sql/find.sql",
        old="(error_class IS NOT NULL AND (\n",
        new="(error_class IS DISTINCT FROM '' AND (\n",
        where="conformance/test_finding.py",
        by="test_jobs_are_found_by_how_they_failed_unless_they_got_over_it[postgres]",
    ),
    Mutant(
        name="one tenant's counts are everybody's",
        file="admin/scope.py",
        old="return await self._store.tally(self.tenant, cap=cap) if",
        new="return await self._store.tally(tenant, cap=cap) if",
        where="web_nouns/test_doc20.py",
        by="test_a_manager_of_one_tenant_sees_and_changes_his_own_only",
    ),
    Mutant(
        name="an operator discards DOC-20's dead letters",
        file="web/doc20.py",
        old='verb="discard", role=Role.MANAGER)',
        new='verb="discard", role=Role.OPERATOR)',
        where="web_nouns/test_doc20.py",
        by="test_only_a_manager_may",
    ),
    Mutant(
        name="a job that is reprocessed under a new key does not hold it",
        file="stores/postgres/sql/name_follower.sql",
        old="IS DISTINCT FROM (SELECT",
        new="IS NOT DISTINCT FROM (SELECT",
        where="web_nouns/test_doc20.py",
        by="test_reprocessing_makes_a_new_job_with_the_payload_and_a_key_of_its_own[postgres]",
    ),
)
