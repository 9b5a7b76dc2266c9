"""A server that dies under its users comes back; one that was stopped stays stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from embedded_stage import postmaster_of, wait_for_the_end_of

from build import a_job
from rota.config import Settings
from rota.errors import EmbeddedUnavailable, StoreUnavailable
from rota.stores import opening
from rota.stores.contract import Store
from rota.stores.opening import Keeper, open_store
from rota.stores.postgres.address import Address
from rota.stores.postgres.embedded import EmbeddedServer

pytestmark = pytest.mark.slow  # real processes, each with a start of its own

DIED = "had died; it was started again"


def kill(server: EmbeddedServer) -> None:
    number = postmaster_of(server)
    os.kill(number, signal.SIGKILL)
    wait_for_the_end_of(number)


async def opened(server: EmbeddedServer) -> AsyncIterator[Store]:
    url = f"embedded:{server.path}"
    store = open_store(url, Settings.load(url=url, app=None))
    yield store
    await store.close()


@pytest.fixture
async def store(server: EmbeddedServer) -> AsyncIterator[Store]:
    async for store in opened(server):
        yield store


@pytest.mark.parametrize("end", [EmbeddedServer.stop, kill])
def test_started_again_it_has_the_same_address(server: EmbeddedServer, end: object) -> None:
    url = server.start()
    end(server)

    assert server.start() == url


def test_only_a_server_that_died_is_revived(server: EmbeddedServer) -> None:
    assert not server.revive(), "it was never started"
    server.start()
    assert not server.revive(), "it runs"
    kill(server)
    assert server.revive()
    assert not server.revive(), "it runs again"
    server.stop()
    assert not server.revive(), "somebody wanted it to stop"
    assert not server.running()
    server.destroy()
    assert not server.revive(), "somebody deleted it"
    assert not server.path.exists()


def test_a_revival_that_failed_is_tried_again(
    server: EmbeddedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "AGAIN", 0.0)
    url = server.start()
    conf, keep = server.data_path / "postgresql.conf", Keeper(server)
    right = conf.read_text()
    conf.write_text(right + "no_such_setting = 1\n")
    kill(server)
    for _ in range(2):
        assert keep() is None
    conf.write_text(right)

    assert keep() == url
    [complaint, revived] = caplog.messages
    assert "is away and cannot be started again" in complaint
    assert "no_such_setting" in complaint
    assert DIED in revived


def test_one_that_is_stopped_while_somebody_would_revive_it_stays_stopped(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    kill(server)
    looks = []

    def stopped_behind_the_first_look(self: EmbeddedServer) -> bool:
        looks.append(missed(self))
        if len(looks) == 1:
            server.start()
            server.stop()
        return looks[-1]

    missed = EmbeddedServer._is_missed
    monkeypatch.setattr(EmbeddedServer, "_is_missed", stopped_behind_the_first_look)

    assert not server.revive()
    assert looks == [True, False]
    assert not server.running()


async def test_who_uses_a_server_that_died_starts_it_again(
    store: Store, server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    job = a_job()
    await store.enqueue([job])
    kill(server)
    with caplog.at_level(logging.WARNING, "rota"):
        found = await asyncio.gather(*(store.get([job.id]) for _ in range(20)))

    assert [one.id for answer in found for one in answer] == [job.id] * 20
    assert [said for said in caplog.messages if "PostgreSQL" in said] == [
        f"the embedded PostgreSQL at {server.data_path} {DIED}"
    ]


async def test_where_its_socket_must_move_its_users_follow(room: Path, made: Path) -> None:
    """A path with a blank is no place for a socket, so that each start has another one."""
    server = EmbeddedServer(room / "my project" / ".rota")
    first = server.start()
    async for store in opened(server):
        job = a_job()
        await store.enqueue([job])
        kill(server)

        assert [one.id for one in await store.get([job.id])] == [job.id]
    assert server.url() != first


async def test_who_uses_a_server_that_was_stopped_waits_for_its_next_start(
    store: Store, server: EmbeddedServer
) -> None:
    await store.enqueue([a_job()])
    server.stop()
    with pytest.raises(StoreUnavailable):
        await store.get([])
    assert not server.running()

    server.start()
    await store.enqueue([a_job()])


async def test_a_long_search_keeps_nobody_longer_than_he_would_wait_and_one_is_enough() -> None:
    began, searches = time.monotonic(), []

    def long() -> str:
        searches.append(True)
        time.sleep(2)
        return "new"

    address = Address("old", long)
    await asyncio.gather(*(address.renew(0.1) for _ in range(5)))
    assert time.monotonic() - began < 1.5
    assert address.url == "old"
    await address.renew(10)

    assert address.now() == "new"
    assert len(searches) == 1


async def test_a_place_that_may_not_be_read_is_said_in_plain_words(
    server: EmbeddedServer,
) -> None:
    server.start()
    kill(server)
    (server.data_path / "global" / "pg_control").rename(server.data_path / "global" / "hidden")
    with pytest.raises(EmbeddedUnavailable, match=r"cannot use .*pg_control"):
        server.revive()
    (server.data_path / "global" / "hidden").rename(server.data_path / "global" / "pg_control")
