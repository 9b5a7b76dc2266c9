"""What is not well is said, the worst first, each with what to do next; what is well raises nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from build import NOON, Clock, a_job, new_id
from rota._core.numbers import Ending, LaneTotal, Minute, Total, bucket
from rota._core.queue import Queue
from rota._core.suspects import Crash
from rota.errors import StoreUnavailable
from rota.stores.contract import SessionStart


async def said(admin) -> list[str]:
    return [alert.what for alert in (await admin.picture()).alerts]


async def a_worker(store, *tasks: str, **fields) -> None:
    start = SessionStart(new_id(), "host", 1, {"general": 5}, tasks or ("mail",), **fields)
    await store.open_session(start, lease=1e6)


async def minute(store, task: str, *, done: int = 0, failed: int = 0, lanes=()) -> None:
    totals = [Total("default", task, Ending.COMPLETED, done, 0.0, 0.0, {bucket(0.1): done})]
    totals.append(Total("default", task, Ending.FAILED, failed, 0.0, 0.0, {bucket(0.1): failed}))
    await store.note_minutes(new_id(), [Minute(NOON, totals, lanes=lanes)])


async def test_a_store_at_rest_needs_nobody(admin, store):
    assert await said(admin) == []
    await a_worker(store)
    await minute(store, "mail", done=1000, failed=50)

    assert await said(admin) == []


async def test_no_worker_is_the_first_thing_to_know(admin, shop):
    await shop.add()
    [alert] = (await admin.picture()).alerts

    assert (alert.bad, alert.about, alert.what) == (True, "workers", "no worker is alive, and 1 job waits")
    assert "rota worker APP" in alert.do


@pytest.mark.req("L40")
async def test_a_high_error_rate_names_the_task_and_the_command(admin, store):
    await a_worker(store)
    await minute(store, "charge", done=60, failed=40)
    await minute(store, "rare", failed=9)
    [alert] = (await admin.picture()).alerts

    assert alert.what == "task charge: 40 % of 100 attempts failed in the last 5 minutes"
    assert "rota failures list --task charge --all;" in alert.do


@pytest.mark.req("L40")
async def test_a_queue_behind_its_target_says_by_how_much(admin, store, clock: Clock):
    await a_worker(store)
    await store.publish_queues([Queue("mail", target="30s")])
    await store.enqueue([a_job("mail", queue="mail")])
    clock.advance(29)
    assert await said(admin) == []
    clock.advance(61)
    [alert] = (await admin.picture()).alerts

    assert alert.bad
    assert alert.what == "queue mail is behind its target of 30s: oldest waits 90s"
    assert "rota stats --by task" in alert.do


async def test_a_tenant_that_floods_a_late_queue_is_named(admin, store, clock: Clock):
    await a_worker(store)
    await store.publish_queues([Queue("mail", target="30s")])
    await store.enqueue([a_job("mail", queue="mail", tenant="acme") for _ in range(19)])
    await store.enqueue([a_job("mail", queue="mail", tenant="birch")])
    clock.advance(31)
    [alert] = (await admin.picture()).alerts

    assert alert.what.endswith("; 95 % of it is tenant acme's")
    assert "rota jobs hold --tenant acme --queue mail --state pending --dry-run" in alert.do


async def test_an_old_backlog_without_a_target_is_a_warning(admin, store, clock: Clock):
    await a_worker(store)
    await store.enqueue([a_job("mail") for _ in range(501)])
    clock.advance(299)
    assert await said(admin) == []
    clock.advance(2)
    assert await said(admin) == ["queue default: 501 jobs wait, the oldest for 5m"]
    clock.advance(3600)

    [alert] = (await admin.picture()).alerts
    assert (alert.bad, alert.what) == (False, "queue default: the oldest due job waits 65m")


async def test_what_nobody_serves_or_knows_is_found_once_it_is_due(admin, store, clock: Clock):
    await a_worker(store, queues={"general": ("default",)})
    await store.enqueue([a_job("mail", queue="reports"), a_job("old"), a_job("later", delay=3600)])

    assert await said(admin) == [
        "queue reports: 1 job waits, and no living worker serves it",
        "task old: 1 job waits, and no living worker knows it",
    ]


async def test_a_parked_task_is_bad_and_says_how_it_is_released(admin, store):
    await a_worker(store)
    for _ in range(2):
        await store.note_crash(Crash("pdf", "v1", new_id(), 2, "SIGSEGV"), limit=2, within=3600)
    [alert] = (await admin.picture()).alerts

    assert alert.what == "task pdf is parked: 2 of its jobs killed their process (SIGSEGV)"
    assert alert.do.endswith("rota tasks release pdf")


async def test_commands_mean_a_hostile_name_and_nothing_else(admin, store, clock: Clock):
    name, quoted = "a; rm -rf $HOME", "'a; rm -rf $HOME'"
    await a_worker(store, queues={"general": ("default",)})
    await store.publish_queues([Queue("default", target="30s")])
    for _ in range(2):
        await store.note_crash(Crash(name, "v1", new_id(), 2, "SIGSEGV"), limit=2, within=3600)
    await minute(store, name, failed=100)
    await store.enqueue([a_job(name, queue=name), *(a_job("mail", tenant=name) for _ in range(9))])
    clock.advance(31)

    commands = [alert.do for alert in (await admin.picture()).alerts]
    commands += [finding.fix for finding in await admin.examine_work() if finding.fix]
    why = await admin.explain_first(task=name)
    commands += [one.command for one in (why, *why.also) if one.command]

    named = [command for command in commands if name in command]
    assert len(named) >= 7
    assert [command for command in named if name in command.replace(quoted, "")] == []


async def test_a_full_lane_and_a_run_past_its_timeout_are_warnings(admin, shop, store, clock: Clock):
    job = await shop.run(await shop.add(timeout=60.0))
    await minute(store, "mail", done=1, lanes=[LaneTotal("fast", 100, 91), LaneTotal("slow", 100, 90)])
    clock.advance(121)
    found = (await admin.picture()).alerts

    assert [alert.bad for alert in found] == [False, False]
    assert found[0].what == "lane fast is 91 % full"
    assert found[1].what == f"job {job.id} (mail) runs for 2m, and its timeout is 60 s"


async def test_what_cannot_be_read_is_unknown_and_the_rest_is_told(admin, shop, store, monkeypatch):
    async def away(*_, **__):
        raise StoreUnavailable("away")

    await shop.run(await shop.add())
    monkeypatch.setattr(store, "running", away)
    monkeypatch.setattr(store, "counts", away)
    picture = await admin.picture()

    assert picture.running is None
    assert picture.unknown == {"counts": "away", "running": "away"}
    assert picture.groups == []
    assert picture.alerts == []


async def test_a_picture_shows_what_runs_and_what_failed(admin, shop, clock: Clock):
    await shop.dead()
    job = await shop.run(await shop.add("mail", tenant="acme"))
    clock.advance(5)
    picture = await admin.picture()

    assert [(work.id, work.tenant) for work in picture.running] == [(job.id, "acme")]
    assert picture.seen.now - picture.running[0].claimed_at == timedelta(seconds=5)
    assert [group.letters for group in picture.groups] == [1]


async def test_the_first_that_waits_somewhere_is_explained(admin, shop, store):
    assert await admin.explain_first(queue="default") is None
    job_id = await shop.add("old")
    await a_worker(store)

    why = await admin.explain_first(task="old")
    assert (why.job_id, why.cause) == (job_id, "task_unknown")
