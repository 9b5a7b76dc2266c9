"""Stages, seeds, and a server that may be hurt. Small by default; CHAOS_LONG=1, CHAOS_SEEDS=n, CHAOS_SEED=first."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.cluster import Cluster
from chaos.proxy import Proxy
from chaos.stage import Stage

LONG = os.environ.get("CHAOS_LONG", "") not in ("", "0")
SEEDS = max(1, int(os.environ.get("CHAOS_SEEDS", "1")))


FIRST = int(os.environ.get("CHAOS_SEED") or (random.SystemRandom().randrange(1_000_000) if LONG else 1))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`seed` runs a test once for each seed; `one_seed` once, for tests that take minutes."""
    seeds = list(range(FIRST, FIRST + SEEDS))
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds, ids=lambda seed: f"seed{seed}")
    if "one_seed" in metafunc.fixturenames:
        metafunc.parametrize("one_seed", seeds[:1], ids=lambda seed: f"seed{seed}")


@pytest.fixture
def long() -> bool:
    """Whether this is the long version."""
    return LONG


@pytest.fixture
def stage(fresh_database: str, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Makes stages on the test's own database; whatever happens, their processes end with the test."""
    yield from _stages(fresh_database, tmp_path)


def _stages(url: str, home: Path) -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def make(seed: int, **options: Any) -> Stage:
        made.append(Stage(url, home, seed, **options))
        return made[-1]

    yield make
    for stage in made:
        stage.close()


@pytest.fixture
def own_server() -> Iterator[Cluster]:
    """A server that may be stopped in the middle of everything, with an empty schema in it."""
    from rota.stores.postgres import PostgresStore

    server = Cluster(max_connections=400)
    try:
        server.start()

        async def migrate() -> None:
            store = PostgresStore(server.url)
            await store.migrate()
            await store.close()

        asyncio.run(migrate())
        yield server
    finally:
        server.destroy()


@pytest.fixture
def stage_there(own_server: Cluster, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Makes stages on the server that may be hurt."""
    yield from _stages(own_server.url, tmp_path)


@pytest.fixture
def proxy(fresh_database: str) -> Iterator[Proxy]:
    """A proxy before the test's own database; it cuts nothing until it is given a rule."""
    proxy = Proxy(fresh_database, lambda _: None)
    proxy.start()
    yield proxy
    proxy.stop()
