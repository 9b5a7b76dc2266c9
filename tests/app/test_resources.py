"""Resources, middleware and the life of an app."""

from __future__ import annotations

import pytest

from rota import Rota
from rota.errors import NotInJob, TaskError
from rota.resource import Resource
from rota.stores.memory import MemoryStore


@pytest.mark.req("L17")
async def test_a_resource_is_made_once_and_cleaned_up_after(memory_app):
    life = []

    @memory_app.resource
    async def database():
        life.append("opened")
        yield {"connected": True}
        life.append("closed")

    await database.open()
    await database.open()
    assert database() == {"connected": True}
    assert database() is database()
    await database.close()

    assert life == ["opened", "closed"]
    assert memory_app.resources == [database]


async def test_a_resource_may_just_be_returned(memory_app):
    @memory_app.resource
    async def mailer():
        return "mailer"

    await mailer.open()
    assert mailer() == "mailer"
    await mailer.close()
    with pytest.raises(NotInJob):
        mailer()


async def test_a_resource_may_use_those_defined_before_it(memory_app):
    @memory_app.resource
    async def settings():
        return {"host": "h"}

    @memory_app.resource
    async def mailer():
        yield f"mailer at {settings()['host']}"

    for resource in memory_app.resources:
        await resource.open()

    assert mailer() == "mailer at h"
    for resource in reversed(memory_app.resources):
        await resource.close()


def test_outside_a_worker_a_resource_says_who_opens_it(memory_app):
    @memory_app.resource
    async def database():
        yield 1

    with pytest.raises(NotInJob) as refused:
        database()

    assert "the resource 'database' is not open here: workers open it for their jobs." in str(refused.value)
    assert "`with database.replaced(value): ...`" in str(refused.value)


async def test_a_test_may_stand_something_in_for_a_resource(memory_app):
    @memory_app.resource
    async def database():
        yield "real"

    @memory_app.task
    async def count() -> str:
        return database()

    with database.replaced("fake"):
        assert await count() == "fake"
    with pytest.raises(NotInJob):
        await count()


async def test_a_resource_can_be_opened_again(memory_app):
    @memory_app.resource
    async def database():
        yield object()

    first = await database.open()
    await database.close()
    second = await database.open()

    assert first is not second
    assert repr(database) == "<Resource database open>"
    await database.close()
    assert repr(database) == "<Resource database closed>"


async def test_cleaning_up_gets_to_its_end_even_if_it_fails(memory_app):
    @memory_app.resource
    async def database():
        yield 1
        raise OSError("cannot close")

    await database.open()
    with pytest.raises(OSError, match="cannot close"):
        await database.close()
    with pytest.raises(NotInJob):
        database()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: 1, "must be an `async def` that yields its value once, or returns it"),
        (lambda: iter([1]), "must be an `async def`"),
    ],
)
def test_what_cannot_be_a_resource_says_why(make, message):
    with pytest.raises(TaskError, match=message):
        Resource(make)


def test_a_resource_takes_no_arguments():
    async def database(url): ...

    with pytest.raises(
        TaskError, match=r"the resource database must take no arguments. Call other resources inside it"
    ):
        Resource(database)


async def test_a_resource_yields_exactly_once():
    async def twice():
        yield 1
        yield 2

    async def never():
        if False:
            yield 1

    resource = Resource(twice)
    await resource.open()
    with pytest.raises(TaskError, match="the resource 'twice' yielded twice"):
        await resource.close()
    with pytest.raises(TaskError, match="the resource 'never' yielded nothing"):
        await Resource(never).open()


async def test_middleware_is_kept_in_order_and_stays_a_function(memory_app):
    @memory_app.middleware
    async def outer(job, call_next):
        return await call_next()

    @memory_app.middleware
    async def inner(job, call_next):
        return await call_next()

    assert memory_app.middleware == [outer, inner]


class Life(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.life: list[str] = []

    async def open(self) -> None:
        self.life.append("opened")

    async def close(self) -> None:
        self.life.append("closed")


async def test_an_app_opens_and_closes_its_store_around_a_block():
    store = Life()
    app = Rota(store=store)

    async with app as same:
        assert same is app
        assert store.life == ["opened"]

    assert "closed" in store.life


async def test_nested_blocks_close_the_store_once_at_the_end():
    store = Life()
    app = Rota(store=store)

    async with app:
        async with app:
            pass
        assert "closed" not in store.life

    assert "closed" in store.life


async def test_a_web_application_uses_the_app_as_its_lifespan():
    store = Life()
    app = Rota(store=store)

    async with app.lifespan(object()):
        assert store.life == ["opened"]

    assert "closed" in store.life


async def test_closing_an_app_that_was_never_used_opens_nothing():
    app = Rota("postgresql://nobody@nowhere.invalid/none")

    await app.close()

    assert repr(app) == "<Rota 0 tasks, store not opened>"


def test_an_app_that_was_used_from_sync_code_closes_those_connections_too():
    import threading

    store = Life()
    app = Rota(store=store)
    threads = []
    close = store.close

    async def noted() -> None:
        threads.append(threading.current_thread().name)
        await close()

    store.close = noted
    app.open_sync()

    import asyncio

    asyncio.run(app.close())

    assert sorted(threads) == sorted([threading.current_thread().name, "rota-portal"])
