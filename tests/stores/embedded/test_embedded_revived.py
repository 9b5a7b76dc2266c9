"""A server that dies under its users comes back under the same address; one that was stopped stays stopped."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import pytest
from embedded_stage import postmaster_of, wait_for_the_end_of

from build import a_job
from rota.config import Settings
from rota.errors import StoreUnavailable
from rota.stores.contract import Store
from rota.stores.opening import open_store
from rota.stores.postgres.embedded import EmbeddedServer

pytestmark = pytest.mark.slow  # real processes, each with a start of its own


def kill(server: EmbeddedServer) -> None:
    number = postmaster_of(server)
    os.kill(number, signal.SIGKILL)
    wait_for_the_end_of(number)


@pytest.fixture
async def store(server: EmbeddedServer) -> Iterator[Store]:
    url = f"embedded:{server.path}"
    store = open_store(url, Settings.load(url=url, app=None))
    yield store
    await store.close()


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
    server.stop()
    assert not server.revive(), "somebody wanted it to stop"
    assert not server.running()


async def test_who_uses_a_server_that_died_starts_it_again(
    store: Store, server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    job = a_job()
    await store.enqueue([job])
    kill(server)
    with caplog.at_level(logging.WARNING, "rota"):
        found = await store.get([job.id])

    assert [one.id for one in found] == [job.id]
    assert f"the embedded PostgreSQL at {server.data_path} had died; it was started again" in caplog.text


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
