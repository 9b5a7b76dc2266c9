"""The API on each store in turn, with what the stage makes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rota.stores.contract import Store
from web_kit import Site, served
from web_routes import Stage


@pytest.fixture
async def site(store: Store) -> AsyncIterator[Site]:
    """On each store in turn."""
    async with served(store) as site:
        yield site


@pytest.fixture
def stage(store: Store) -> Stage:
    return Stage(store)
