"""Two tenants on the same pages: what one of them wrote is on no page, in no file and in no list of the other."""

from __future__ import annotations

import pytest

from page_routes import EXAMPLES
from rota.stores.memory import MemoryStore
from rota.web.pages import page_table
from web_kit import served
from web_routes import CANARY, Stage

SHOWN = [
    route
    for route in page_table()
    if route.method == "GET"
    and (one := EXAMPLES.get(route.permission.verb))
    and one.scoped
    and (one.path is None or one.shared)
]
OWN = {
    "page.overview", "page.failures", "page.jobs", "page.jobs_csv", "page.jobs_json", "page.activity", "page.workers",
}  # fmt: skip
"""Those on which a tenant finds what he wrote, so that the canary is known to have been there."""


@pytest.mark.req("W36")
@pytest.mark.parametrize("route", SHOWN, ids=lambda route: route.permission.verb)
async def test_what_another_tenant_wrote_is_on_no_page_and_in_no_file(route):
    example = EXAMPLES[route.permission.verb]
    async with served(MemoryStore(), pages=True) as site:
        stage = Stage(site.store)
        await stage.litter(CANARY)
        made = {} if example.path is None else await example.path(stage, None)
        path = route.path.replace(":path}", "}").format(**made)
        answers = {
            tenant: await (await site.browser("manager", tenant)).get(path, params=example.params)
            for tenant in ("blue", CANARY)
        }

    assert answers["blue"].status_code == 200, answers["blue"].text
    assert CANARY not in answers["blue"].text
    if route.permission.verb in OWN:
        assert answers[CANARY].text.count(CANARY) > 1  # more than his own name


def test_the_pages_of_that_test_are_there():
    assert {route.permission.verb for route in SHOWN} >= OWN
