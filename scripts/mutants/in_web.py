"""Mutants of the HTTP face: who is let in, what he may, and what a page of another site can do."""

from __future__ import annotations

from mutant import Mutant

MUTANTS = (
    Mutant(
        name="every role may do everything over HTTP",
        file="web/asking.py",
        old="    if not caller.user.role.allows(needed):\n",
        new="    if not caller.user.role.allows(Role.VIEWER):\n",
        where="web/test_every_route.py",
        by="test_who_may_ask_for_it[jobs.kill]",
    ),
    Mutant(
        name="over HTTP a tenant's caller asks for all tenants",
        file="web/asking.py",
        old="actor=self.user.name, tenant=self.user.tenant)",
        new="actor=self.user.name, tenant=None)",
        where="web/test_every_route.py",
        by="test_what_belongs_to_another_tenant_is_not_there[memory-jobs.show]",
    ),
    Mutant(
        name="a body is read also where a route has none",
        file="web/asking.py",
        old="                if has_body:",
        new="                if limit:",
        where="web/test_request_limits.py",
        by="test_a_body_is_not_read_where_none_is_meant",
    ),
    Mutant(
        name="one who guesses keeps others from logging in",
        file="web/api/sessions.py",
        old="    token = await asked.desk.door.token(asked.request, login.token)\n",
        new="    _slowly(asked)\n    token = await asked.desk.door.token(asked.request, login.token)\n",
        where="web/test_login.py",
        by="test_one_who_guesses_keeps_nobody_out_at_his_address",
    ),
    Mutant(
        name="events that were left out are not told",
        file="web/feed.py",
        old="missed = missed or look.more",
        new="missed = missed or not look.mark",
        where="web/test_events_stream.py",
        by="test_who_could_not_be_told_all_hears_that_he_missed_something",
    ),
    Mutant(
        name="a page of another site changes things with somebody's cookie",
        file="web/auth.py",
        old="    if not own:\n",
        new="    if own is None:\n",
        where="web/test_who_may.py",
        by="test_nothing_is_changed_from_a_page_of_another_site",
    ),
    Mutant(
        name="a wrong token falls back to the host application",
        file="web/auth.py",
        old="            return None if token is None else _of(token, by_token=True)\n",
        new="            if token is not None:\n                return _of(token, by_token=True)\n",
        where="web/test_who_may.py",
        by="test_a_token_of_ours_counts_beside_the_host_application_and_a_wrong_one_is_no_second_chance",
    ),
    Mutant(
        name="a login link counts twice",
        file="web/sessions.py",
        old="self._made.pop(key, (None, 0.0))",
        new="self._made.get(key, (None, 0.0))",
        where="web/test_login.py",
        by="test_a_login_link_counts_once_on_this_machine",
    ),
    Mutant(
        name="the API answers to any name",
        file="web/host.py",
        old="        return any(\n",
        new="        return name != '' or any(\n",
        where="web/test_hosts_and_headers.py",
        by="test_a_name_that_is_not_ours_is_refused_whoever_asks",
    ),
    Mutant(
        name="a body without a length is read without end",
        file="web/limits.py",
        old="                if size > limit:\n",
        new="                if size > 100 * BODY:\n",
        where="web/test_request_limits.py",
        by="test_also_when_its_length_is_not_said_and_the_rest_is_not_even_read",
    ),
    Mutant(
        name="a tenant hears of everybody's jobs",
        file="web/feed.py",
        old="        if self.tenant is not None and one.tenant != self.tenant:\n",
        new="        if self.tenant is not None and one.task is None:\n",
        where="web/test_events_stream.py",
        by="test_a_tenant_hears_of_its_own_jobs_only",
    ),
)
