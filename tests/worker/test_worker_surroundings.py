"""What surrounds a handler: resources that are opened once, and middleware around every run."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from rota import current_job
from rota.errors import RotaError
from rota.worker import opening


@pytest.mark.req("L17")
async def test_resources_are_opened_in_order_used_by_handlers_and_closed_in_reverse(stage):
    diary: list[str] = []

    @stage.app.resource
    async def database():
        diary.append("database opened")
        yield {"rows": 3}
        diary.append("database closed")

    @stage.app.resource
    async def mailer():
        diary.append("mailer opened")
        yield f"mailer over {database()['rows']} rows"
        diary.append("mailer closed")

    @stage.app.task
    async def use() -> str:
        return mailer()

    worker = await stage.work()
    result = await (await use.enqueue())
    await stage.stop(worker)

    assert result == "mailer over 3 rows"
    assert diary == ["database opened", "mailer opened", "mailer closed", "database closed"]


async def test_a_resource_that_cannot_be_opened_keeps_the_worker_from_starting_and_says_so(stage):
    closed: list[str] = []

    @stage.app.resource
    async def database():
        yield 1
        closed.append("database")

    @stage.app.resource
    async def mailer():
        raise OSError("no route to mail.example.org")
        yield

    with pytest.raises(
        RotaError, match=r"did not start: its resource 'mailer' could not be opened \(OSError: no route"
    ):
        await stage.work()

    assert closed == ["database"]


async def test_a_resource_that_cannot_be_closed_does_not_keep_the_others_open(stage, caplog):
    closed: list[str] = []

    @stage.app.resource
    async def database():
        yield 1
        closed.append("database")

    @stage.app.resource
    async def mailer():
        yield 2
        raise OSError("gone already")

    code = await stage.stop(await stage.work())

    assert (code, closed) == (0, ["database"])
    assert "the resource 'mailer' could not be closed cleanly" in caplog.text


async def test_a_resource_that_hangs_while_it_closes_keeps_neither_the_others_nor_the_worker(
    stage, caplog, monkeypatch
):
    monkeypatch.setattr(opening, "CLOSE_WITHIN", 0.2)
    closed: list[str] = []

    @stage.app.resource
    async def database():
        yield 1
        closed.append("database")

    @stage.app.resource
    async def mailer():
        yield 2
        await asyncio.Event().wait()

    code = await stage.stop(await stage.work())

    assert (code, closed) == (0, ["database"])
    assert "the resource 'mailer' has not closed within 0.2 s" in caplog.text


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_middleware_runs_around_every_handler_the_first_outermost(stage, kind):
    diary: list[str] = []
    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="clean")

    @stage.app.middleware
    async def outer(job, call_next):
        diary.append(f"outer before {job.task}")
        mark.set("from middleware")
        value = await call_next()
        diary.append("outer after")
        return value + 1

    @stage.app.middleware
    async def inner(job, call_next):
        diary.append("inner before")
        value = await call_next()
        diary.append("inner after")
        return value * 10

    if kind == "async":

        @stage.app.task(name="four")
        async def four() -> int:
            diary.append(f"handler sees {mark.get()}, {current_job().task}")
            return 4

    else:

        @stage.app.task(name="four")
        def four() -> int:
            diary.append(f"handler sees {mark.get()}, {current_job().task}")
            return 4

    await stage.work()

    assert await (await four.enqueue()) == 41
    assert diary == [
        "outer before four",
        "inner before",
        "handler sees from middleware, four",
        "inner after",
        "outer after",
    ]


async def test_middleware_sees_what_a_handler_in_a_thread_raises(stage):
    @stage.app.middleware
    async def forgiving(job, call_next):
        try:
            return await call_next()
        except ValueError as error:
            return f"forgiven: {error}"

    @stage.app.task
    def fails() -> str:
        raise ValueError("no")

    await stage.work()

    assert await (await fails.enqueue()) == "forgiven: no"
