"""The tasks page: what each task takes, how it runs and how long, and the form that enqueues one."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import uuid4

import pytest

from build import a_job, a_session
from page_kit import PageSite, followed, paged, words
from rota import Retry
from rota._core.job import State
from rota._core.numbers import Minute, Total, bucket
from rota._core.schedule import ScheduleSpec
from rota._core.suspects import Crash
from rota._core.task_spec import TaskSpec
from rota.stores.contract import JobFilter
from rota.stores.memory import MemoryStore
from rota.web.pages.tasks import retry_words

HOSTILE = "a/b c%?<i>#"
BIG = 9_007_199_254_740_993


@pytest.fixture
async def site() -> AsyncIterator[PageSite]:
    async with paged(MemoryStore()) as site:
        await site.store.publish([task.spec() for task in site.app.tasks.values()])
        yield site


async def works(site: PageSite, *totals: Total) -> None:
    now = await site.store.now()
    start = (now - timedelta(minutes=1)).replace(second=0, microsecond=0)
    await site.store.note_minutes(await a_session(site.store, lease=1e6), [Minute(start, totals)])


async def jobs(site: PageSite):
    return await site.store.find(JobFilter(states=tuple(State)))


async def test_a_new_store_teaches_how_tasks_become_known():
    async with paged(MemoryStore()) as empty:
        page = await (await empty.visitor("viewer")).get("/tasks")

    assert "No task is known" in words(page)
    assert "rota worker APP" in words(page)


async def test_tasks_show_where_they_run_how_often_how_long_and_how_well(site):
    await works(
        site,
        Total("post", "mail", "completed", 60, runs={bucket(0.5): 57, bucket(40.0): 3}),
        Total("post", "mail", "failed", 40, runs={bucket(0.5): 40}),
    )

    said = words(await (await site.visitor("viewer")).get("/tasks"))

    assert re.search(r"mail post 100 1\.[67]/min", said)
    assert "40 %" in said
    assert said.index("mail post") < said.index("report default")


async def test_a_task_shows_its_arguments_and_its_policy_in_words(site):
    spec = TaskSpec(
        "resize",
        queue="images",
        retry=Retry(attempts=3, base=10, classes={"OSError": "transient"}),
        timeout=90.0,
        code_version="2026.11.3",
        schema_json=json.dumps(
            {
                "description": "Make it smaller.",
                "properties": {
                    "photo": {"type": "string", "description": "Where it is."},
                    "width": {"type": "integer", "default": 320},
                },
                "required": ["photo"],
                "additionalProperties": False,
            }
        ),
    )
    await site.store.publish([spec])
    await site.store.publish_schedules(
        [ScheduleSpec("nightly", "resize", '{"payload": {"photo": "x"}}', "30 2 * * *")]
    )

    said = words(await (await site.visitor("viewer")).get("/tasks/resize"))

    assert "Make it smaller." in said
    assert "photo text Where it is. required" in said
    assert "width whole number default 320" in said
    assert "3 attempts, with pauses of 10s, 20s" in said
    assert "OSError: transient" in said
    assert "1m 30s" in said
    assert "2026.11.3" in said
    assert "nightly" in said
    assert "rota enqueue resize photo=…" in said


@pytest.mark.parametrize(
    ("retry", "says"),
    [
        (Retry(), "5 attempts, with pauses of 2s, 4s, 8s, 16s, 20% either way, 5m at most."),
        (Retry(attempts=1), "One attempt, and no other."),
        (
            Retry(attempts=9, base=200, jitter=0, lost=False),
            "pauses of 3m 20s, 5m, 5m, 5m, …, 5m at most. Never again after a crash.",
        ),
    ],
)
def test_a_retry_policy_is_a_sentence(retry, says):
    assert says in retry_words(retry)


async def test_durations_are_drawn_along_time_so_that_two_bands_are_seen_as_two(site):
    await works(site, Total("post", "mail", "completed", 103, runs={bucket(0.5): 100, bucket(40.0): 3}))

    page = await (await site.visitor("viewer")).get("/tasks/mail?range=15m")

    assert "100 runs of 256ms to 512ms" in page.text or "100 runs of 512ms to 1s" in page.text
    assert "3 runs of 32.8s to 1m" in page.text
    assert '<caption class="sr">Runs by time and duration</caption>' in page.text
    assert 'class="w5"' in page.text


@pytest.mark.req("D35", "D33")
async def test_an_operator_enqueues_a_job_and_lands_on_its_page(site):
    otto = await site.visitor("operator")

    page = await followed(
        otto,
        "/tasks/mail",
        **{
            "arg.to": "ann@example.org",
            "arg.copies": str(BIG),
            "queue": "slow",
            "priority": "7",
            "delay": "10m",
            "key": "order-7",
            "tenant": "red",
        },
    )

    [job] = await jobs(site)
    assert "/jobs/" in str(page.url)
    assert "Enqueued." in words(page)
    assert job.payload == {"to": "ann@example.org", "copies": BIG}
    assert (job.queue, job.priority, job.key, job.tenant) == ("slow", 7, "order-7", "red")
    assert job.run_at - job.created_at == timedelta(minutes=10)
    assert str(job.created_by).startswith("operator of all")


async def test_what_is_left_empty_is_as_the_task_says(site):
    await followed(
        await site.visitor("operator"),
        "/tasks/mail",
        **{"arg.to": "ann", "arg.copies": "", "queue": " "},
    )

    [job] = await jobs(site)
    assert (job.payload, job.queue, job.priority, job.tenant) == ({"to": "ann"}, "post", 100, None)


async def test_arguments_that_do_not_fit_are_told_and_what_was_typed_is_kept(site):
    page = await (await site.visitor("operator")).post(
        "/tasks/mail", data={"arg.to": "", "arg.copies": "lots", "key": "order-7"}
    )

    assert page.status_code == 422
    assert "2 arguments did not fit: nothing was enqueued" in words(page)
    assert '"lots" is not a whole number' in words(page)
    assert 'value="lots"' in page.text
    assert 'value="order-7"' in page.text
    assert await jobs(site) == []


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"priority": "high"}, "priority"),
        ({"priority": "99999"}, "32767"),
        ({"delay": "soon"}, "soon"),
        ({"queue": "é" * 501}, "queue"),
        ({"tenant": "x" * 1001}, "characters"),
    ],
)
async def test_options_that_do_not_fit_are_told(site, typed, says):
    page = await (await site.visitor("operator")).post("/tasks/mail", data={"arg.to": "ann"} | typed)

    assert page.status_code == 422, words(page)
    assert says in words(page)
    assert await jobs(site) == []


async def test_a_key_of_a_job_with_other_arguments_is_a_conflict_that_leads_to_it(site):
    otto = await site.visitor("operator")
    await followed(otto, "/tasks/mail", **{"arg.to": "ann", "key": "order-7"})

    conflict = await otto.post("/tasks/mail", data={"arg.to": "bob", "key": "order-7"})
    same = await followed(otto, "/tasks/mail", **{"arg.to": "ann", "key": "order-7"})

    assert conflict.status_code == 409
    assert "order-7" in words(conflict)
    assert "Show that job" in words(conflict)
    assert 'value="bob"' in conflict.text
    assert "this job stands for it already" in words(same)
    assert len(await jobs(site)) == 1


async def test_a_task_whose_code_is_not_here_is_enqueued_by_what_was_published(site):
    schema = {"properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
    await site.store.publish([TaskSpec("far", queue="away", schema_json=json.dumps(schema))])

    await followed(await site.visitor("operator"), "/tasks/far", **{"arg.n": "3"})

    [job] = await jobs(site)
    assert (job.task, job.queue, job.payload) == ("far", "away", {"n": 3})


async def test_a_viewer_has_no_form_and_may_not_enqueue(site):
    vera = await site.visitor("viewer")

    page = await vera.get("/tasks/mail")

    assert "<form" not in page.text.partition("<main")[2].partition("</main>")[0]
    assert (await vera.post("/tasks/mail", data={"arg.to": "ann"})).status_code == 403
    assert (await vera.post("/task-releases/mail")).status_code == 403
    assert await jobs(site) == []


async def test_somebody_of_one_tenant_enqueues_for_it_alone_and_is_told_of_no_numbers(site):
    await works(site, Total("post", "mail", "completed", 4242))
    red = await site.visitor("operator", "red")

    listed, page = await red.get("/tasks"), await red.get("/tasks/mail")
    await followed(red, "/tasks/mail", **{"arg.to": "ann"})
    foreign = await red.post("/tasks/mail", data={"arg.to": "ann", "tenant": "blue"})

    assert "4,242" not in listed.text + page.text
    assert "unknown" in words(listed)
    assert 'name="tenant"' not in page.text
    assert foreign.status_code == 422
    assert [job.tenant for job in await jobs(site)] == ["red"]


async def test_a_parked_task_says_why_and_is_released(site):
    await site.store.note_crash(Crash("mail", "v1", uuid4(), 2, "killed by SIGSEGV"), limit=1, within=3600.0)
    otto = await site.visitor("operator")

    listed, page = await otto.get("/tasks"), await otto.get("/tasks/mail")
    released = await followed(otto, "/task-releases/mail", reason="memory was added")
    again = await otto.post("/task-releases/mail")

    assert "parked" in words(listed)
    assert "killed by SIGSEGV" in words(page)
    assert "Parked: none of its jobs is begun under code version v1" in words(page)
    assert "Released: 0 jobs went back on the list" in words(released)
    assert "Parked:" not in words(released)
    assert again.status_code == 409


async def test_an_unknown_task_is_not_here(site):
    page = await (await site.visitor("viewer")).get("/tasks/nothing")

    assert page.status_code == 404
    assert "No task 'nothing' is published" in words(page)


async def test_any_name_has_its_page_and_its_form(site):
    schema = {
        "properties": {HOSTILE: {"type": "string", "description": HOSTILE}},
        "additionalProperties": False,
    }
    await site.store.publish([TaskSpec(HOSTILE, queue=HOSTILE, schema_json=json.dumps(schema))])
    otto = await site.visitor("operator")

    listed = await otto.get("/tasks")
    href = next(
        part.partition('"')[0]
        for part in listed.text.split('data-open href="')[1:]
        if "a/b" in part.partition('"')[0]
    )
    page = await otto.get(href)
    action = page.text[page.text.index('id="enqueue"') :].partition('action="')[2].partition('"')[0]
    done = await followed(otto, action, **{f"arg.{HOSTILE.replace('%', '%25')}": "x"})

    [job] = await jobs(site)
    assert "<i>" not in listed.text + page.text
    assert (job.task, job.payload) == (HOSTILE, {HOSTILE: "x"})
    assert done.status_code == 200


async def test_why_its_first_job_waits_is_told(site):
    await site.store.enqueue([a_job("mail", {"to": "ann"}, queue="post")])

    said = words(await (await site.visitor("viewer")).get("/tasks/mail"))

    assert "Why does its first job wait?" in said
    assert "Nothing waits:" not in said
