"""Stages for child processes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

for place in (Path(__file__).parent, Path(__file__).parents[1]):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

from process_stage import ProcessStage  # noqa: E402 - found by the lines above

from rota.stores.memory import MemoryStore  # noqa: E402


@pytest.fixture
async def children() -> AsyncIterator[ProcessStage]:
    """The app on a memory store."""
    stage = ProcessStage(MemoryStore())
    yield stage
    await stage.close()


@pytest.fixture
async def children_on_postgres(fresh_database: str) -> AsyncIterator[ProcessStage]:
    """The app on a database that children can reach."""
    from rota.stores.postgres import PostgresStore

    store = PostgresStore(fresh_database)
    stage = ProcessStage(store, fresh_database)
    yield stage
    await stage.close()
    await store.close()
