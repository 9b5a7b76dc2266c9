"""The system page: the store, its health, what is kept how long, settings, tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from build import Clock, a_job, claim, completed
from page_kit import PageSite, followed, paged, words
from rota import Rota
from rota._core.retention import Policy
from rota._core.token import Role
from rota.admin import Admin
from rota.config import Settings
from rota.errors import StoreUnavailable
from rota.stores.contract import Finding, PrivateFinding
from rota.stores.memory import MemoryStore
from rota.web import User

WEEKS = 30 * 86_400.0


@pytest.fixture
async def site(clock: Clock) -> AsyncIterator[PageSite]:
    async with paged(MemoryStore(clock=clock)) as site:
        yield site


async def some_old_jobs(site: PageSite, clock: Clock, count: int) -> None:
    await site.store.enqueue([a_job() for _ in range(count)])
    while jobs := await claim(site.store):
        await site.store.settle([completed(job) for job in jobs])
    clock.advance(WEEKS)


async def test_the_memory_store_says_calmly_that_it_has_no_tables(site):
    page = await (await site.visitor("viewer")).get("/system")

    assert "Store memory in this process; gone with it" in words(page)
    assert "Nothing to measure" in words(page)
    assert "Oldest transaction" in words(page)
    assert '<figure class="chart"' not in page.text
    assert "Nobody has looked yet" not in words(page)
    assert "connection: the memory store answers" in words(page)
    assert "workers: none is running Start one with rota worker APP" in words(page)


async def test_postgresql_shows_its_version_schema_tables_and_health(fresh_database):
    from rota.stores.postgres import PostgresStore

    store = PostgresStore(fresh_database)
    try:
        async with paged(store) as site:
            await store.enqueue([a_job() for _ in range(5)])
            page = await (await site.visitor("viewer")).get("/system")
    finally:
        await store.close()

    assert "PostgreSQL 1" in words(page)
    assert "up to date" in words(page)
    assert "finished_jobs" in words(page)
    assert "clock: within" in words(page)
    assert "nothing waits to be merged" in words(page)


async def test_a_store_that_does_not_tell_is_unknown_and_never_zero(site, monkeypatch):
    async def away(self):
        raise StoreUnavailable("the store is away")

    monkeypatch.setattr(MemoryStore, "room", away)
    monkeypatch.setattr(MemoryStore, "policies", away)

    page = await (await site.visitor("viewer")).get("/system")

    assert page.status_code == 200
    assert "The store did not say what it holds." in words(page)
    assert "Unknown: the store did not answer this question." in words(page)


async def test_what_is_bad_stands_first_with_its_remedy(site, monkeypatch):
    async def examine(self):
        return [Finding("ok", "all fine"), Finding("bad", "schema: version 3", "Run `rota migrate`.")]

    monkeypatch.setattr(Admin, "examine", examine)

    said = words(await (await site.visitor("viewer")).get("/system"))

    assert said.index("schema: version 3 Run rota migrate") < said.index("all fine")


async def test_those_who_look_at_once_share_one_examination(site, monkeypatch):
    asked = []

    async def examine(self):
        asked.append(self)
        return []

    monkeypatch.setattr(Admin, "examine", examine)
    visitor = await site.visitor("viewer")

    for _ in range(3):
        await visitor.get("/system")

    assert len(asked) == 1


async def test_policies_are_listed_with_who_set_them_and_the_defaults_behind(site):
    await Admin(site.store, actor="ann@office").set_policy(Policy(None, tenant="acme"), reason="legal hold")

    page = await (await site.visitor("viewer")).get("/system")

    assert "tenant=acme for ever ann@office" in words(page)
    assert "legal hold" in words(page)
    assert "state=archived 365d default" in words(page)


async def test_a_manager_sees_what_would_go_before_it_goes(site, clock):
    await some_old_jobs(site, clock, 3)
    mona = await site.visitor("manager")

    plain, foreseen = await mona.get("/system"), await mona.get("/system?foresee=true")
    done = await followed(mona, "/system/prune", reason="the disk is full", expected="3")
    await site.asgi.state.drivers.idle()
    after = await mona.get("/system?foresee=true")

    assert "jobs would go now" not in words(plain)
    assert "3 jobs would go now and leave a summary" in words(foreseen)
    assert "3 completed jobs by" in words(foreseen)
    assert "Retention lets go of 3 jobs" in words(done)
    assert "0 jobs would go now." in words(after)
    assert "3 archived" in words(await mona.get("/activity?action=pruned"))


async def test_very_many_go_only_when_their_number_was_typed(site, clock):
    await some_old_jobs(site, clock, 1001)
    mona = await site.visitor("manager")

    page = await mona.get("/system?foresee=true")
    untyped = await mona.post("/system/prune", data={"expected": "1001", "reason": "the disk is full"})
    unseen = await mona.post("/system/prune", data={"number": "1001"})
    typed = await mona.post("/system/prune", data={"expected": "1001", "number": "1,001"})
    await site.asgi.state.drivers.idle()

    assert 'pattern="1001"' in page.text
    assert 'name="expected" value="1001"' in page.text
    assert (untyped.status_code, "Type 1001 to go on" in words(untyped)) == (422, True)
    assert 'value="the disk is full"' in untyped.text
    assert (unseen.status_code, "you were shown is missing" in words(unseen)) == (422, True)
    assert typed.status_code == 303


async def test_a_few_that_end_or_go_meanwhile_do_not_stop_retention_and_many_more_are_shown_first(
    site, clock
):
    await some_old_jobs(site, clock, 1_020)
    mona = await site.visitor("manager")

    grown = await mona.post(
        "/system/prune", data={"expected": "600", "number": "600", "reason": "the disk is full"}
    )
    more = await mona.post("/system/prune", data={"expected": "1010", "number": "1010"})
    await site.asgi.state.drivers.idle()
    fewer = await mona.post("/system/prune", data={"expected": "1010", "number": "1010"})
    await site.asgi.state.drivers.idle()

    assert grown.status_code == 409
    assert "1,020 jobs would go by now, and you were shown 600. Look again, then decide." in words(grown)
    assert 'name="expected" value="1020"' in grown.text
    assert 'value="the disk is full"' in grown.text
    assert 'name="next" value="/system"' in grown.text
    assert (more.status_code, fewer.status_code) == (303, 303)


async def test_only_a_manager_sees_tokens_and_revokes_them(site):
    made = await Admin(site.store, actor="ann").create_token("grafana", role=Role.VIEWER)
    mona, otto = await site.visitor("manager"), await site.visitor("operator")
    where = f"/system/tokens/{made.token.id}/revoke"

    others = await otto.get("/system")
    refused = await otto.post(where)
    revoked = await followed(mona, where)
    again = await mona.post(where)

    assert "grafana" not in words(others)
    assert "Show what would go now" not in words(others)
    assert refused.status_code == 403
    assert (await otto.post("/system/prune")).status_code == 403
    assert "Revoked grafana" in words(revoked)
    assert made.text not in revoked.text
    assert again.status_code == 409
    assert (await mona.post("/system/tokens/nobody/revoke")).status_code == 404


async def test_settings_are_shown_with_their_origin_and_without_passwords(clock):
    settings = Settings.load(url="postgresql://ann:sesame@db.example.org/jobs", app=None)
    store = MemoryStore(clock=clock)
    async with paged(store) as site:
        site.app = Rota(store=store, settings=settings)
        site.asgi.state.desk.rota = site.app

        page = await (await site.visitor("manager")).get("/system")
        viewers = await (await site.visitor("viewer")).get("/system")

    assert "db.example.org" in words(page)
    assert "db.example.org" not in viewers.text
    assert "sesame" not in page.text
    assert "argument" in words(page)
    assert "at their defaults" in words(page)


async def test_people_of_one_tenant_are_told_that_the_system_is_about_all(site):
    red = await site.visitor("manager", "red")

    page = await red.get("/system")

    assert (page.status_code, "The system is about all tenants" in words(page)) == (200, True)
    assert "Settings" not in words(page)
    assert (await red.post("/system/prune")).status_code == 403
    assert (await red.post("/system/tokens/x/revoke")).status_code == 403


async def test_the_page_is_there_while_the_store_is_away(clock, monkeypatch):
    store = MemoryStore(clock=clock)

    async def away(*_args, **_options):
        raise StoreUnavailable("no answer from db.example.org:5432")

    for verb in ("now", "sessions", "room", "policies"):
        monkeypatch.setattr(store, verb, away)

    async with paged(store, auth=lambda _: User("vera", Role.VIEWER)) as site:
        page = await site.anonymous(accept="text/html").get("/system")

    assert page.status_code == 200
    assert "bad store: the store cannot be reached as it should" in words(page)
    assert "db.example.org" not in page.text


async def test_where_the_store_is_concerns_managers_whatever_was_found(site, monkeypatch):
    async def diagnose():
        return [
            PrivateFinding("ok", "connection: db.example.org:5432/jobs"),
            PrivateFinding("warn", "hints: cannot connect to db.example.org:5432"),
        ]

    monkeypatch.setattr(site.store, "diagnose", diagnose, raising=False)

    told = [await (await site.visitor(role)).get("/system") for role in ("viewer", "operator", "manager")]

    assert ["db.example.org" in page.text for page in told] == [False, False, True]
    assert "connection: the store answers" in words(told[0])
    assert "hints: the store cannot be reached as it should" in words(told[0])


async def test_more_tokens_than_are_shown_are_counted(site):
    ann = Admin(site.store, actor="ann")
    for number in range(100):
        await ann.create_token(f"robot {number}", role=Role.VIEWER)

    said = words(await (await site.visitor("manager")).get("/system"))

    assert "The newest 100 of 101." in said
    assert "rota token list" in said


async def test_what_the_database_suffers_from_is_drawn_on_one_axis_of_time(fresh_database, clock):
    from rota.stores.postgres import PostgresStore

    store = PostgresStore(fresh_database, clock=clock)
    try:
        async with paged(store) as site:
            viewer = await site.visitor("viewer")
            before = await viewer.get("/system")
            await store.note_room()
            clock.advance(300)
            await store.note_room()
            page = await viewer.get("/system?range=6h")
            tenant = await (await site.visitor("viewer", "red")).get("/system?range=6h")
            wrong = await viewer.get("/system?range=1y")
    finally:
        await store.close()

    assert "Nobody has looked yet" in words(before)
    charts = page.text.split('<figure class="chart"')[1:]
    assert [chart.partition("<b>")[2].partition("</b>")[0] for chart in charts] == [
        "Size",
        "Dead rows",
        "Oldest transaction",
    ]
    for chart in charts:
        assert chart.count('data-v=""') == chart.count("data-t=") - 2  # nobody looked in the others
        assert chart.count("data-t=") == charts[0].count("data-t=")
    assert "megabytes of all tables" in words(page)
    assert "Dead rows" not in tenant.text
    assert wrong.status_code == 422
