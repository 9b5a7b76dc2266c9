"""Purging a queue: what waits in it is cancelled as an operation, what runs is left alone, its name is asked for."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from html import unescape

import pytest

from build import a_job, a_session, claim
from page_kit import PageSite, paged, words
from rota._core.actions import AuditFilter
from rota._core.filtering import parse
from rota._core.job import State
from rota.admin import Admin
from rota.admin.purging import VERB, purge_filter
from rota.web.driving import drivers_of

HOSTILE = 'a/b "c" %?#<i>'


@pytest.fixture
async def site(store) -> AsyncIterator[PageSite]:
    async with paged(store) as site:
        yield site


async def add(site: PageSite, count: int = 1, **fields) -> list:
    jobs = [a_job("mail", {"to": "ann"}, **({"queue": "post"} | fields)) for _ in range(count)]
    await site.store.enqueue(jobs)
    return [job.id for job in jobs]


async def states(site: PageSite, ids) -> list[State]:
    return [job.state for job in await site.store.get(ids)]


async def purged(site: PageSite, client, **form: str):
    """Send the form, and wait until it is done."""
    answer = await client.post("/purge/queues/post", data=form)
    await drivers_of(site.asgi).idle()
    return answer


async def test_the_question_says_how_many_wait_and_that_what_runs_is_left_alone(site):
    await add(site)
    await claim(site.store, await a_session(site.store, lease=1e6))
    await add(site)
    await add(site, held=True)
    mona = await site.visitor("manager")

    page = await mona.get("/purge/queues/post")

    assert "2 jobs that wait, are blocked or held" in words(page)
    assert "1 that runs now" in words(page)
    assert "Type post to go on" in words(page)
    assert "rota queues purge post" in words(page)


async def test_what_waits_is_cancelled_and_nothing_else_with_who_and_why(site):
    running = await add(site)
    await claim(site.store, await a_session(site.store, lease=1e6))
    waiting = await add(site, 3) + await add(site, held=True)
    other = await add(site, queue="slow")
    mona = await site.visitor("manager")

    begun = await purged(site, mona, name="post", expected="4", reason="sent by hand")
    shown = await mona.get(begun.headers["location"])
    [operation] = await site.store.operations(limit=5)
    rows = await Admin(site.store, actor="x").trail(AuditFilter(about=operation.about, limit=50))

    assert begun.status_code == 303
    assert await states(site, waiting) == [State.CANCELLED] * 4
    assert await states(site, running + other) == [State.RUNNING, State.PENDING]
    assert "4 of 4 met" in words(shown)
    assert [row.action for row in rows] == ["cancel"] * 4 + ["operation_begun"]
    assert {row.reason for row in rows} == {"sent by hand"}


async def test_the_way_back_runs_again_what_was_purged_and_nothing_that_was_cancelled_before(site, clock):
    [before] = await add(site)
    await Admin(site.store, actor="ann").cancel(before)
    clock.advance(60)
    waiting = await add(site, 2)
    mona = await site.visitor("manager")
    text = (await mona.get("/purge/queues/post")).text
    [command] = {unescape(one) for one in re.findall(r'data-copy="(rota jobs retry [^"]*)"', text)}
    clock.advance(5)
    await purged(site, mona, name="post", expected="2")

    meant = parse(shlex.split(command)[3:], now=clock.now)
    assert {job.id for job in await site.store.find(meant)} == set(waiting)


@pytest.mark.parametrize("typed", ["", "Post", "mail", "post;"])
async def test_another_name_purges_nothing_and_is_said_beside_its_field(site, typed):
    waiting = await add(site)
    mona = await site.visitor("manager")

    page = await purged(site, mona, name=typed, reason="because", expected="1")

    assert page.status_code == 422
    assert "Nothing was purged" in page.text.partition('id="name-error"')[2].partition("</p>")[0]
    assert 'value="because"' in page.text
    assert f'value="{typed}" required' in page.text
    assert await states(site, waiting) == [State.PENDING]
    assert await site.store.operations(limit=5) == []


async def test_when_many_more_came_than_were_shown_it_asks_again(site):
    waiting = await add(site, 15)
    mona = await site.visitor("manager")

    page = await purged(site, mona, name="post", expected="1")

    assert page.status_code == 409
    assert "15 jobs match now, and you were shown 1" in words(page)
    assert set(await states(site, waiting)) == {State.PENDING}


async def test_an_empty_queue_has_nothing_to_purge(site):
    page = await (await site.visitor("manager")).get("/purge/queues/nothing")

    assert "Nothing to do: no job waits in this queue." in words(page)


async def test_any_name_can_be_purged(site):
    waiting = await add(site, queue=HOSTILE)
    other = await add(site, queue="a/b")
    mona = await site.visitor("manager")
    queue = await mona.get("/queues/a%2Fb%20%22c%22%20%25%3F%23%3Ci%3E")
    link = queue.text.partition('href="/purge/')[2].partition('"')[0]

    page = await mona.get(f"/purge/{link}")
    done = await mona.post(f"/purge/{link}", data={"name": HOSTILE, "expected": "1"})
    await drivers_of(site.asgi).idle()

    assert (page.status_code, done.status_code) == (200, 303)
    assert HOSTILE not in page.text
    assert await states(site, waiting + other) == [State.CANCELLED, State.PENDING]


async def test_a_manager_of_one_tenant_purges_what_is_his(site):
    red, blue = await add(site, tenant="red"), await add(site, tenant="blue")
    manager = await site.visitor("manager", "red")

    page = await manager.get("/purge/queues/post")
    await purged(site, manager, name="post", expected="1")

    assert "of red alone" in words(page)
    assert await states(site, red + blue) == [State.CANCELLED, State.PENDING]


async def test_only_managers_are_offered_it(site):
    await add(site)
    otto, mona = await site.visitor("operator"), await site.visitor("manager")

    assert "/purge/queues/post" not in (await otto.get("/queues/post")).text
    assert "/purge/queues/post" in (await mona.get("/queues/post")).text
    assert (await otto.get("/purge/queues/post")).status_code == 403
    assert (await otto.post("/purge/queues/post", data={"name": "post"})).status_code == 403


async def test_what_starts_while_it_goes_on_is_left_alone(site, monkeypatch):
    [job] = await add(site)
    admin = Admin(site.store, actor="mona")
    begun = await admin.begin_job_operation(VERB, purge_filter("post"), expected=1)
    write = admin._write

    async def late(*given, **more):
        """A worker is a little faster."""
        await claim(site.store, await a_session(site.store, lease=1e6))
        return await write(*given, **more)

    monkeypatch.setattr(admin, "_write", late)
    done = await admin.drive(begun)

    assert (done.progress.done, done.progress.changed) == (0, 1)
    assert await states(site, [job]) == [State.RUNNING]
