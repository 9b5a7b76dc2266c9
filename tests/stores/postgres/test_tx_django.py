"""tx= with Django: the job is stored by Django's own connection, and lives or dies with its atomic block."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import django
import psycopg
import pytest
from asgiref.sync import SyncToAsync, async_to_sync, sync_to_async
from django.conf import settings
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection, connections, transaction
from django.db.utils import ConnectionHandler, IntegrityError

from rota import Rota, State, Unique
from rota.errors import NotSupported, NotUnique, TaskError, TransactionUnusable
from rota.stores.contract import JobFilter
from rota.stores.postgres import PostgresStore

if not settings.configured:
    settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}}, USE_TZ=True)
    django.setup()


@pytest.fixture
def database(fresh_database) -> Iterator[str]:
    """Django's `default` (and `replica`) is this test's database; `lite` is another kind."""
    parts = psycopg.conninfo.conninfo_to_dict(fresh_database)
    words = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": parts["host"],
        "PORT": parts["port"],
        "NAME": parts["dbname"],
        "USER": parts["user"],
    }
    lite = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    handler = ConnectionHandler({"default": words, "replica": dict(words), "lite": lite})
    before, connections.settings = connections.settings, handler.settings
    forget()
    yield fresh_database
    forget()
    # Django keeps one thread for what async code asks of it; its connections are its own.
    SyncToAsync.single_thread_executor.submit(forget).result()
    connections.settings = before


def forget() -> None:
    """Close this thread's connections, and let the next use make them anew."""
    for alias in ("default", "replica", "lite"):
        connections[alias].close()
        del connections[alias]


@pytest.fixture
def app(database) -> Iterator[Rota]:
    app = Rota(store=PostgresStore(database))

    @app.task
    def send(to: str) -> None: ...

    @app.task(unique=Unique("site", on_duplicate="reject"), serial="site")
    def rebuild(site: int) -> None: ...

    yield app
    app.close_sync()


def stored(app: Rota) -> list[Any]:
    """The arguments of all jobs, oldest first."""
    looker = Rota(store=PostgresStore(app.store.url))

    async def look() -> list[Any]:
        found = await looker.store.find(JobFilter(oldest_first=True))
        await looker.close()
        return [next(iter(job.payload.values())) for job in found]

    return asyncio.run(look())


def note(word: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS public.note (word text PRIMARY KEY)")
        cursor.execute("INSERT INTO public.note VALUES (%s)", [word])


def notes() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT word FROM public.note ORDER BY word")
        return [word for (word,) in cursor.fetchall()]


@pytest.mark.scenario(11)
@pytest.mark.parametrize("named", ["transaction", "connection", "wrapper", "alias", "True", "cursor"])
def test_a_job_lives_and_dies_with_its_atomic_block_whatever_django_is_called(app, named):
    def tx() -> Any:
        return {
            "transaction": transaction,
            "connection": connection,
            "wrapper": connections["default"],
            "alias": "default",
            "True": True,
            "cursor": connection.cursor() if named == "cursor" else None,
        }[named]

    send = app.tasks["send"]
    with transaction.atomic():
        note("first")
        handle = send.using(tx=tx()).enqueue_sync("ann")
        assert stored(app) == []
    assert handle.created
    with contextlib.suppress(ZeroDivisionError), transaction.atomic():
        note("second")
        send.using(tx=tx()).enqueue_sync("bob")
        raise ZeroDivisionError

    assert stored(app) == ["ann"]
    assert notes() == ["first"]
    assert handle.status_sync() is State.PENDING


def test_a_savepoint_that_is_rolled_back_takes_its_jobs_along_and_no_others(app):
    send = app.tasks["send"].using(tx=transaction)
    with transaction.atomic():
        send.enqueue_sync("before")
        with contextlib.suppress(IntegrityError), transaction.atomic():
            send.enqueue_sync("inside")
            note("once")
            note("once")
        send.enqueue_sync("after")
        saved = transaction.savepoint()
        send.enqueue_sync("by hand")
        transaction.savepoint_rollback(saved)

    assert stored(app) == ["before", "after"]


def test_keys_unique_and_serial_mean_the_same_and_a_refusal_does_not_break_the_block(app):
    rebuild, send = (
        app.tasks["rebuild"].using(tx=transaction),
        app.tasks["send"].using(tx=transaction, key="k"),
    )
    with transaction.atomic():
        first = rebuild.enqueue_sync(7)
        with pytest.raises(NotUnique):
            rebuild.enqueue_sync(7)
        bulk = app.tasks["send"].using(tx=transaction).enqueue_many_sync(["a", "b"])
        one, two = send.enqueue_sync("c"), send.enqueue_sync("c")
        note("still usable")

    assert stored(app) == [7, "a", "b", "c"]
    assert (one.id, two.created, len(bulk.created)) == (two.id, False, 2)
    assert first.refresh_sync().gate == "serial::7"
    assert notes() == ["still usable"]


def test_a_transaction_without_an_atomic_block_will_do(app):
    transaction.set_autocommit(False)
    app.enqueue_sync("send", {"to": "undone"}, tx=transaction)
    transaction.rollback()
    app.enqueue_sync("send", {"to": "done"}, tx=transaction)
    transaction.commit()
    transaction.set_autocommit(True)

    assert stored(app) == ["done"]


def test_what_on_commit_does_sees_the_job(app):
    seen = []
    with transaction.atomic():
        handle = app.tasks["send"].using(tx=transaction).enqueue_sync("ann")
        transaction.on_commit(lambda: seen.append(handle.status_sync()))
        assert seen == []

    assert seen == [State.PENDING]


def test_another_alias_is_another_transaction(app):
    send = app.tasks["send"]
    with transaction.atomic(using="replica"):
        with pytest.raises(TransactionUnusable, match=r"transaction\.atomic\(using='default'\)"):
            send.using(tx=transaction).enqueue_sync("a")
        send.using(tx="replica").enqueue_sync("b")

    assert stored(app) == ["b"]


# Async


async def test_in_an_async_view_the_sync_part_holds_the_transaction(app):
    """The way of Django's own documentation: what needs a transaction is one sync function."""

    def place(word: str, *, fail: bool) -> Any:
        with transaction.atomic():
            handle = app.tasks["send"].using(tx=transaction).enqueue_sync(word)
            note(word)
            if fail:
                raise ZeroDivisionError
            return handle

    handle = await sync_to_async(place)("kept", fail=False)
    with pytest.raises(ZeroDivisionError):
        await sync_to_async(place)("lost", fail=True)

    assert await asyncio.to_thread(handle.status_sync) is State.PENDING
    assert await asyncio.to_thread(stored, app) == ["kept"]


async def test_awaited_it_joins_the_transaction_of_the_thread_that_django_keeps(app):
    send = app.tasks["send"].using(tx=transaction)
    block = transaction.atomic()
    await sync_to_async(block.__enter__)()
    await send.enqueue("ann")
    await app.tasks["send"].using(tx="default").enqueue_many(["bob", "eve"])
    await app.tasks["send"].using(tx=connection).enqueue("joe")
    assert await asyncio.to_thread(stored, app) == []
    await sync_to_async(block.__exit__)(None, None, None)

    assert await asyncio.to_thread(stored, app) == ["ann", "bob", "eve", "joe"]


async def test_awaited_without_a_transaction_it_is_refused(app):
    with pytest.raises(TransactionUnusable, match="in autocommit mode and outside a transaction"):
        await app.tasks["send"].using(tx=transaction).enqueue("ann")

    assert await asyncio.to_thread(stored, app) == []


def test_an_async_view_under_a_sync_one_shares_its_transaction(app):
    """As in a test case of Django, or an async function that sync code calls."""

    async def view() -> None:
        await app.tasks["send"].using(tx=transaction).enqueue("ann")

    with transaction.atomic():
        async_to_sync(view)()
        assert stored(app) == []

    assert stored(app) == ["ann"]


async def test_a_connection_of_another_thread_is_refused_with_what_to_pass(app):
    mine = connections["default"]
    with pytest.raises(TransactionUnusable) as refused:
        await app.tasks["send"].using(tx=mine).enqueue("ann")

    assert str(refused.value) == (
        "tx= got Django's connection 'default' of another thread. Nothing was stored. Pass 'default' or "
        "django.db.transaction: then the connection of the right thread is used."
    )


async def test_the_sync_verb_on_an_event_loop_is_refused_as_django_itself_does(app):
    with pytest.raises(SynchronousOnlyOperation):
        transaction.get_autocommit()

    with pytest.raises(TaskError, match="Write `await enqueue"):
        app.tasks["send"].using(tx=transaction).enqueue_sync("ann")


async def test_whoever_allows_django_on_the_loop_may_use_it_so(app, monkeypatch):
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with transaction.atomic():
        app.tasks["send"].using(tx=transaction).enqueue_sync("ann")
        await app.tasks["send"].using(tx=transaction).enqueue("bob")
    forget()

    assert await asyncio.to_thread(stored, app) == ["ann", "bob"]


# Refusals


def test_autocommit_is_refused_with_the_block_to_write(app):
    with pytest.raises(TransactionUnusable) as refused:
        app.tasks["send"].using(tx=transaction).enqueue_sync("ann")

    assert str(refused.value) == (
        "tx= got a django.db.backends.postgresql.base.DatabaseWrapper in autocommit mode and outside a transaction: "
        "the job would be stored at once, whatever becomes of your work. Nothing was stored. Enqueue inside `with "
        "transaction.atomic(using='default'):`, or leave tx= out."
    )
    assert stored(app) == []


def test_a_database_that_django_does_not_know_is_refused_with_those_it_knows(app):
    with pytest.raises(TransactionUnusable) as refused:
        app.tasks["send"].using(tx="defualt").enqueue_sync("ann")

    assert str(refused.value) == (
        "tx= got 'defualt', and Django has no such database. Nothing was stored. Name one of default, replica, lite."
    )


def test_another_kind_of_database_is_refused_by_its_name(app):
    with transaction.atomic(using="lite"), pytest.raises(NotSupported) as refused:
        app.tasks["send"].using(tx="lite").enqueue_sync("ann")

    assert str(refused.value) == (
        "the PostgreSQL store cannot enqueue within Django's 'lite', which is SQLite. Jobs live in PostgreSQL: enqueue "
        "after your commit, without tx=."
    )


def test_a_connection_that_broke_inside_its_block_is_refused(app):
    with transaction.atomic():
        connection.close()
        with pytest.raises(TransactionUnusable, match="DatabaseWrapper that is closed"):
            app.tasks["send"].using(tx=transaction).enqueue_sync("ann")


def test_where_django_is_not_loaded_its_names_mean_nothing(app, monkeypatch):
    monkeypatch.delitem(sys.modules, "django.db")
    for given in (True, "default"):
        with pytest.raises(NotSupported, match="stands for a connection of Django, which is not loaded here"):
            app.tasks["send"].using(tx=given).enqueue_sync("ann")


def test_django_uses_the_driver_that_rota_brings():
    """psycopg 2 cannot be below it: Django takes psycopg 3 wherever that is installed, and Rota needs it."""
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    assert is_psycopg3
