"""What a handler sees and gives: arguments, context, results, threads, resources, middleware."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pydantic import BaseModel

from build import a_job
from rota import Retry, current_job
from rota._core.job import State
from rota.current import context


class Receipt(BaseModel):
    to: str
    at: datetime


@pytest.mark.req("L41")
async def test_a_task_is_a_function_and_nothing_else_is_needed_to_run_it(stage):
    @stage.app.task
    async def send(to: str, at: datetime) -> Receipt:
        return Receipt(to=to, at=at)

    await stage.work()
    moment = datetime(2026, 5, 4, tzinfo=UTC)

    assert await (await send.enqueue("a@b.c", at=moment)) == Receipt(to="a@b.c", at=moment)


async def test_a_plain_function_runs_in_a_thread_and_gives_its_result(stage):
    @stage.app.task
    def where() -> str:
        return threading.current_thread().name

    await stage.work()

    assert (await (await where.enqueue())).startswith("rota-thread-")


@pytest.mark.req("L17")
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_handler_learns_of_its_job_by_current_job(stage, kind):
    def story() -> dict[str, object]:
        job = current_job()
        return {
            "id": str(job.id),
            "payload": job.payload,
            "correlation": job.correlation_id,
            "attempt": job.attempt,
            "tenant": job.tenant,
        }

    if kind == "async":

        @stage.app.task(name="story")
        async def tell(n: int) -> dict[str, object]:
            return story()

    else:

        @stage.app.task(name="story")
        def tell(n: int) -> dict[str, object]:
            return story()

    await stage.work()
    handle = await tell.using(correlation_id="visit-7", tenant="acme").enqueue(n=3)

    assert await handle == {
        "id": str(handle.id),
        "payload": {"n": 3},
        "correlation": "visit-7",
        "attempt": 1,
        "tenant": "acme",
    }


async def test_jobs_enqueued_inside_a_job_inherit_its_correlation_tenant_and_name_it_as_parent(stage):
    @stage.app.task
    async def child() -> None: ...

    @stage.app.task
    async def parent() -> str:
        return str((await child.enqueue()).id)

    await stage.work()
    with context(tenant="acme", correlation_id="visit-7"):
        first = await parent.enqueue()
    found = await stage.job(UUID(await first))

    assert (found.tenant, found.correlation, found.parent_id) == ("acme", "visit-7", first.id)


def the_mark() -> contextvars.ContextVar[str]:
    return contextvars.ContextVar("mark", default="clean")


@pytest.mark.parametrize("kind", ["instant", "waiting", "thread"])
async def test_what_a_handler_sets_in_its_context_does_not_reach_the_next_job(stage, kind):
    mark = the_mark()
    seen: list[str] = []

    def look() -> None:
        seen.append(mark.get())
        mark.set("dirty")

    if kind == "thread":

        @stage.app.task(name="look")
        def job() -> None:
            look()

    else:

        @stage.app.task(name="look")
        async def job() -> None:
            look()
            if kind == "waiting":
                await asyncio.sleep(0)

    handles = [await job.enqueue() for _ in range(6)]
    await stage.work()
    for handle in handles:
        await stage.ended(handle)

    assert seen == ["clean"] * 6


async def test_a_value_that_cannot_be_compared_does_not_reach_the_next_job_either(stage):
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("no")

        __hash__ = None

    mark: contextvars.ContextVar[object] = contextvars.ContextVar("odd")
    seen: list[object] = []
    outer = mark.set(Odd())

    @stage.app.task
    async def look() -> None:
        seen.append(type(mark.get()).__name__)
        mark.set(Odd() if len(seen) == 1 else 5)

    for _ in range(3):
        await look.enqueue()
    await stage.work()
    await until_length(seen, 3)
    mark.reset(outer)

    assert seen == ["Odd", "Odd", "Odd"]


async def until_length(things: list, number: int) -> None:
    async with asyncio.timeout(5):
        while len(things) < number:
            await asyncio.sleep(0.005)


async def test_a_handler_that_waits_has_an_asyncio_task_of_its_own(stage):
    tasks: set[asyncio.Task] = set()

    @stage.app.task
    async def wait() -> None:
        before = asyncio.current_task()
        await asyncio.sleep(0.02)
        assert asyncio.current_task() is before
        tasks.add(before)

    handles = [await wait.enqueue() for _ in range(5)]
    await stage.work()
    states = [(await stage.ended(handle)).state for handle in handles]

    assert states == [State.COMPLETED] * 5
    assert len(tasks) == 5


async def test_asyncio_timeout_works_inside_a_handler(stage):
    @stage.app.task
    async def impatient() -> str:
        try:
            async with asyncio.timeout(0.02):
                await asyncio.sleep(60)
        except TimeoutError:
            return "gave up"
        return "slept"

    await stage.work()

    assert await (await impatient.enqueue()) == "gave up"


async def test_a_handler_that_cancels_its_own_task_harms_no_other_job(stage):
    @stage.app.task
    async def selfish() -> str:
        asyncio.current_task().cancel()
        return "done"

    @stage.app.task
    async def innocent() -> str:
        await asyncio.sleep(0)
        return "done"

    first, second = await selfish.enqueue(), await innocent.enqueue()
    await stage.work()

    assert (await first, await second) == ("done", "done")
    assert (await stage.job(second)).attempt == 1


@pytest.mark.req("V1")
async def test_independent_steps_inside_one_job_run_side_by_side(stage):
    @stage.app.task
    async def build() -> list[str]:
        together = asyncio.Barrier(2)

        async def step(name: str) -> str:
            await together.wait()
            return f"{name} for {current_job().task}"

        async with asyncio.TaskGroup() as group:
            steps = [group.create_task(step(name)) for name in ("docs", "search")]
        return [step.result() for step in steps]

    await stage.work()

    assert await (await build.enqueue()) == ["docs for build", "search for build"]


async def test_many_jobs_that_never_wait_leave_the_loop_its_turn(stage):
    longest = 0.0

    async def neighbour() -> None:
        nonlocal longest
        last = time.monotonic()
        while True:
            await asyncio.sleep(0)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()

    @stage.app.task
    async def busy() -> None:
        time.sleep(0.005)

    handles = await busy.enqueue_many([() for _ in range(100)])
    beside = asyncio.create_task(neighbour())
    await stage.work(lanes={"general": 200})
    for handle in handles:
        await stage.ended(handle)
    beside.cancel()

    assert longest < 0.25, "one batch of half a second kept everything else waiting"


async def test_threads_run_side_by_side(stage):
    together = threading.Barrier(3)

    @stage.app.task
    def meet() -> int:
        return together.wait(timeout=5)

    await stage.work()
    handles = [await meet.enqueue() for _ in range(3)]

    assert sorted([await handle for handle in handles]) == [0, 1, 2]


async def test_an_idle_thread_is_used_again(stage):
    @stage.app.task
    def who() -> int:
        return threading.get_ident()

    await stage.work()

    assert len({await (await who.enqueue()) for _ in range(5)}) == 1


async def test_arguments_that_do_not_fit_are_dead_at_once_with_the_reason(stage):
    @stage.app.task(retry=Retry(attempts=5))
    async def send(to: str) -> None: ...

    new = a_job("send", {"too": "a@b.c"})
    await stage.store.enqueue([new])
    await stage.work()
    job = await stage.ended(new.id)

    assert (job.state, job.error_class, job.attempt) == (State.DEAD, "payload_invalid", 1)
    assert "argument 'to' is missing" in job.error_message


async def test_a_result_that_cannot_be_stored_is_dead_at_once_because_the_work_was_done(stage):
    @stage.app.task(retry=Retry(attempts=5))
    async def odd():
        return object()

    await stage.work()
    job = await stage.ended(await odd.enqueue())

    assert (job.state, job.error_class, job.attempt) == (State.DEAD, "non_retryable", 1)
    assert job.error_message.startswith(
        "the handler returned, but its result cannot be stored: the result of odd"
    )
