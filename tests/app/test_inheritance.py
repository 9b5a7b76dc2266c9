"""What jobs hand on: correlation, tenant, author and parent, from the job or the context around an enqueue."""

from __future__ import annotations

import asyncio

import pytest

from rota import context, current_job
from rota.current import RunningJob, running
from rota.errors import Cancel, NotInJob
from rota.stores.contract import JobFilter


@pytest.fixture
def steps(app):
    @app.task
    async def step(name: str) -> None:
        if name == "first":
            await step.enqueue("second")
            await step.using(tenant="other", correlation_id="own", created_by="me").enqueue("third")

    return step


async def by_name(app) -> dict:
    return {job.payload["name"]: job for job in await app.store.find(JobFilter(limit=100))}


@pytest.mark.req("L11", "L13")
async def test_a_job_hands_its_correlation_tenant_author_and_itself_to_the_jobs_it_enqueues(app, steps, work):
    await steps.using(tenant="acme", correlation_id="c-1", created_by="admin-ui").enqueue("first")
    await work(app)

    jobs = await by_name(app)
    child = jobs["second"]
    assert (child.correlation_id, child.tenant, child.created_by) == ("c-1", "acme", "admin-ui")
    assert child.parent_id == jobs["first"].id
    assert await app.store.find(JobFilter(correlation_id="c-1", parent_id=jobs["first"].id)) == [child]


async def test_what_using_says_wins_over_what_is_handed_on(app, steps, work):
    await steps.using(tenant="acme").enqueue("first")
    await work(app)

    other = (await by_name(app))["third"]
    assert (other.tenant, other.correlation_id, other.created_by) == ("other", "own", "me")


@pytest.mark.req("L11")
async def test_a_job_without_a_correlation_starts_one_named_by_its_id(app, steps, work):
    first = await steps.enqueue("first")
    await work(app)

    jobs = await by_name(app)
    assert jobs["first"].correlation == str(first.id)
    assert jobs["second"].correlation_id == str(first.id)


@pytest.mark.req("L11")
async def test_all_jobs_of_a_correlation_are_found_in_the_order_of_creation(app, steps, clock):
    with context(correlation_id="c-1"):
        for name in ("a", "b", "c"):
            await steps.enqueue(name)
            clock.advance(1)
    await steps.enqueue("d")

    found = await app.store.find(JobFilter(correlation_id="c-1", oldest_first=True))
    assert [job.payload["name"] for job in found] == ["a", "b", "c"]


@pytest.mark.req("D24")
async def test_a_context_names_the_author_and_the_tenant_of_what_is_enqueued_inside(app, steps):
    with context(tenant="acme", created_by="server-api"):
        inside = await (await steps.enqueue("a")).refresh()
    outside = await (await steps.enqueue("b")).refresh()

    assert (inside.tenant, inside.created_by) == ("acme", "server-api")
    assert (outside.tenant, outside.created_by) == (None, None)


async def test_contexts_nest_and_an_empty_text_takes_away(app, steps):
    with context(tenant="acme", correlation_id="c-1"), context(correlation_id="c-2"):
        nested = await (await steps.enqueue("a")).refresh()
        with context(tenant=""):
            without = await (await steps.enqueue("b")).refresh()
        detached = await (await steps.using(tenant="", correlation_id="").enqueue("c")).refresh()

    assert (nested.tenant, nested.correlation_id) == ("acme", "c-2")
    assert (without.tenant, without.correlation_id) == (None, "c-2")
    assert (detached.tenant, detached.correlation) == (None, str(detached.id))


async def test_a_context_around_a_worker_does_not_reach_into_its_jobs(app, steps, work):
    await steps.using(tenant="acme").enqueue("first")
    with context(tenant="of the process", created_by="of the process"):
        await work(app)

    child = (await by_name(app))["second"]
    assert (child.tenant, child.created_by) == ("acme", None)


async def test_a_context_inside_a_job_does(app, work):
    @app.task
    async def step(name: str) -> None:
        if name == "first":
            with context(tenant="inner"):
                await step.enqueue("second")

    first = await step.using(tenant="outer").enqueue("first")
    await work(app)

    child = (await by_name(app))["second"]
    assert (child.tenant, child.parent_id) == ("inner", first.id)


async def test_a_child_may_be_detached_from_its_parent(app, work):
    @app.task
    async def step(name: str) -> None:
        if name == "first":
            await step.using(parent="").enqueue("second")

    await step.enqueue("first")
    await work(app)

    assert (await by_name(app))["second"].parent_id is None


@pytest.mark.req("L13")
async def test_a_parent_may_be_a_handle_an_id_or_the_public_form_of_one(app, steps):
    parent = await steps.enqueue("a")

    for given in (parent, parent.id, str(parent.id), parent.public_id):
        child = await steps.using(parent=given).enqueue("b")
        assert (await child.refresh()).parent_id == parent.id


@pytest.mark.req("L17", "V1")
async def test_a_handler_sees_its_job(app, work):
    seen = []

    @app.task(queue="fast")
    async def look(at: str) -> None:
        async def deeper() -> RunningJob:
            await asyncio.sleep(0)
            return current_job()

        # Steps of one job run side by side in plain async code, and each knows the job.
        seen.extend(await asyncio.gather(deeper(), deeper()))

    handle = await look.using(
        tenant="acme", subject="site:1", correlation_id="c-1", key="k", tags=["t"], created_by="me", external_id="e",
        category="sync", deadline="1h", timeout=60, priority=7, max_attempts=3,
    ).enqueue("x")  # fmt: skip
    await work(app)

    job, again = seen
    assert job is again
    assert (job.id, job.public_id, job.task, job.queue) == (handle.id, handle.public_id, "look", "fast")
    assert (job.payload, job.attempt, job.max_attempts, job.last_attempt) == ({"at": "x"}, 1, 3, False)
    assert (job.tenant, job.subject, job.correlation_id, job.key) == ("acme", "site:1", "c-1", "k")
    assert (job.tags, job.created_by, job.external_id, job.category) == (("t",), "me", "e", "sync")
    assert (job.timeout, job.priority, job.parent_id) == (60.0, 7, None)
    assert job.deadline is not None
    assert job.created_at <= job.deadline
    assert job.run_at == job.created_at
    assert job.fence == job.job.version


def test_outside_a_job_there_is_no_current_job():
    with pytest.raises(
        NotInJob, match=r"current_job\(\) was asked for outside a running job. It works inside a task"
    ):
        current_job()


def test_a_handler_in_a_thread_can_stop_when_asked(memory_app):
    from build import a_stored_job

    job = RunningJob(a_stored_job(reason="not needed"))
    token = running.set(job)
    try:
        current_job().stop_if_cancelled()
        job.cancel_requested = True
        with pytest.raises(Cancel, match="not needed"):
            current_job().stop_if_cancelled()
    finally:
        running.reset(token)
