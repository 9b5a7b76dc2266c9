"""The API on each store in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rota.stores.contract import Store
from rota.stores.memory import MemoryStore
from web_kit import Site, served


@pytest.fixture
async def site(store: Store) -> AsyncIterator[Site]:
    """On each store in turn."""
    async with served(store) as site:
        yield site


@pytest.fixture
async def memory_site() -> AsyncIterator[Site]:
    """For what no store has a part in."""
    async with served(MemoryStore()) as site:
        yield site
