"""Stages for the tests of the worker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from worker_stage import FaultyStore, Stage

from rota.stores.memory import MemoryStore


@pytest.fixture(params=["memory", "postgres"])
async def stage(request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    """An app on each store in turn."""
    if request.param == "memory":
        stage = Stage(MemoryStore())
        yield stage
        await stage.close()
        return
    from rota.stores.postgres import PostgresStore

    url, listen_url = (request.getfixturevalue(name) for name in ("fresh_database", "listen_url"))
    store = PostgresStore(url, listen_url=listen_url)
    stage = Stage(store)
    yield stage
    await stage.close()
    await store.close()


@pytest.fixture
async def in_memory() -> AsyncIterator[Stage]:
    """An app on a memory store, for stories that look inside it."""
    stage = Stage(MemoryStore())
    yield stage
    await stage.close()


@pytest.fixture
async def faulty() -> AsyncIterator[Stage]:
    """An app on a memory store whose line can be cut."""
    stage = Stage(FaultyStore())
    yield stage
    await stage.close()
