"""From an address to a store: which one, when it starts, and what it says."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rota import ConfigError, Rota, State
from rota.config import Settings
from rota.stores.memory import MemoryStore
from rota.stores.observed import observed
from rota.stores.opening import LateStore, address_of, embedded_path, open_store
from rota.stores.postgres import PostgresStore


def opened(url: str):
    return open_store(url, Settings.load(url=url))


def test_the_scheme_chooses_the_store():
    assert isinstance(opened("memory://"), MemoryStore)
    assert isinstance(opened("postgresql://u@h/d"), PostgresStore)
    assert isinstance(opened("postgres://u@h/d"), PostgresStore)
    assert isinstance(opened("embedded:"), LateStore)


def test_without_an_address_the_settings_decide(monkeypatch):
    assert isinstance(open_store(None, Settings.load()), LateStore)
    monkeypatch.setenv("ROTA_URL", "memory://")
    assert isinstance(open_store(None, Settings.load()), MemoryStore)


def test_a_wrong_address_is_refused_when_the_store_is_needed_not_when_the_app_is_made():
    app = Rota("mysql://root@h/d")

    with pytest.raises(
        ConfigError, match=r"the address 'mysql://root@h/d' \(from argument\) is not one that Rota can open"
    ):
        _ = app.store


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("embedded:", ".rota"),
        ("embedded:jobs", "jobs"),
        ("embedded://", ".rota"),
        ("embedded:///srv/jobs", "/srv/jobs"),
        ("embedded:/srv/jobs", "/srv/jobs"),
    ],
)
def test_an_embedded_address_names_a_directory(address, path, tmp_path):
    assert embedded_path(address) == tmp_path / path


async def test_an_embedded_store_starts_at_the_first_call_migrates_itself_and_says_where_its_files_are(
    tmp_path, caplog
):
    from rota.stores.postgres.embedded import EmbeddedServer

    app = Rota("embedded:here")

    @app.task
    async def send() -> None: ...

    assert not Path("here").exists()
    try:
        with caplog.at_level(logging.INFO, "rota"):
            handle = await send.enqueue()

        assert await handle.status() is State.PENDING
        said = [record.getMessage() for record in caplog.records if record.name == "rota"]
        assert len(said) == 1
        assert said[0].startswith("jobs are kept in the embedded PostgreSQL at ")
        assert str(EmbeddedServer(Path("here")).data_path) in said[0]
        await app.close()
        assert await Rota("embedded:here").job(handle.id).status() is State.PENDING
    finally:
        await app.close()
        EmbeddedServer(Path("here")).destroy()


def test_a_supervisor_opens_an_embedded_store_by_its_place_so_that_it_looks_after_the_server_too(tmp_path):
    """The address of the socket is another one after each start where its place has a blank in it."""
    assert address_of(Rota("embedded:my jobs").store) == f"embedded:{tmp_path}/my jobs"
    assert not Path("my jobs").exists()


async def test_a_late_store_is_made_once_whoever_asks_first_and_blocks_nobody():
    made = []

    def start():
        time.sleep(0.2)
        made.append(threading.current_thread())
        return MemoryStore()

    store = LateStore("memory://", MemoryStore, start)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while not made:
            ticks += 1
            await asyncio.sleep(0.01)

    await asyncio.gather(tick(), *(store.now() for _ in range(10)))

    assert len(made) == 1
    assert ticks > 5


async def test_once_it_is_there_a_late_store_stands_in_nobodys_way():
    real = MemoryStore()
    store = LateStore("memory://", MemoryStore, lambda: real)
    await store.now()

    assert store.now.__self__ is real
    assert store.__dict__["now"].__self__ is real


async def test_closing_a_late_store_that_never_started_does_not_start_it():
    await LateStore("memory://", MemoryStore, lambda: pytest.fail("started")).close()


def test_a_late_store_has_the_abilities_of_the_real_one_before_it_starts():
    store = LateStore("memory://", MemoryStore, lambda: pytest.fail("started"))

    assert hasattr(store, "listen")
    assert not hasattr(store, "enqueue_within")


async def test_a_server_that_does_not_start_tells_everyone_why_and_is_tried_again():
    answers = iter([OSError("no room"), MemoryStore()])

    def start():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    store = LateStore("memory://", MemoryStore, start)
    with pytest.raises(OSError, match="no room"):
        await store.now()

    assert await store.now()


class Slow(MemoryStore):
    async def get(self, job_ids):
        await asyncio.sleep(0.02)
        return await super().get(job_ids)

    async def sessions(self):
        raise OSError("gone")


async def test_a_slow_call_is_warned_of_by_name(caplog):
    store = observed(Slow(), slow=0.01)

    with caplog.at_level(logging.WARNING, "rota.store"):
        await store.get([])
        await store.now()

    assert [record.getMessage() for record in caplog.records] == [
        "the memory store took 0.0 s for get; is the database slow, locked or far away?"
    ]


async def test_the_start_of_a_server_is_no_slow_call(caplog):
    calls = []

    def start():
        time.sleep(0.03)
        return Slow()

    with caplog.at_level(logging.WARNING, "rota.store"):
        plain = observed(LateStore("memory://", MemoryStore, start), slow=0.01)
        await asyncio.gather(plain.now(), plain.counts())
        reported = observed(LateStore("memory://", MemoryStore, start), calls.append, slow=0.01)
        await reported.now()
        await reported.now()
        assert not caplog.records
        await plain.get([])

    assert [call.verb for call in calls] == ["now"]
    assert "for get; is the database slow" in caplog.text


async def test_every_call_is_reported_with_its_time_and_its_error():
    calls = []
    store = observed(Slow(), calls.append)

    assert await store.enqueue([]) == []
    with pytest.raises(OSError, match="gone"):
        await store.sessions()

    assert [(call.store, call.verb, call.items) for call in calls] == [
        ("memory", "enqueue", 0),
        ("memory", "sessions", None),
    ]
    assert calls[0].error is None
    assert isinstance(calls[1].error, OSError)
    assert all(0 <= call.seconds < 5 for call in calls)


async def test_watching_a_store_leaves_its_abilities_as_they_are():
    plain = MemoryStore()
    store = observed(plain)

    assert store.name == "memory"
    assert store.listen.__self__ is plain
    assert not hasattr(store, "enqueue_within")


def test_threads_that_need_the_store_first_get_the_same_one():
    app = Rota("memory://")
    barrier = threading.Barrier(8)

    def ask(_):
        barrier.wait()
        return id(app.store)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1


async def test_an_app_watches_the_store_it_opens():
    app = Rota("memory://")

    await app.open()

    assert type(app.store).__name__ == "_Observed"
    assert app.store is app.store


def test_the_address_to_listen_at_reaches_the_store():
    settings = Settings.load(url="postgresql://pooler/db", listen_url="postgresql://direct/db")

    store = open_store(None, settings)

    assert (store.url, store._listen_url) == ("postgresql://pooler/db", "postgresql://direct/db")
