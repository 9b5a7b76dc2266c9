"""Stages, seeds, and a server that may be hurt.

Small by default. `--long`, `--seeds N` and `--seed FIRST` (or CHAOS_LONG=1, CHAOS_SEEDS, CHAOS_SEED) make it more:
`make chaos SEEDS=20`, `make chaos ARGS="--seeds 20 -k all_faults_at_once"`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.cluster import Cluster
from chaos.proxy import Proxy
from chaos.stage import Stage

CHANCE = random.SystemRandom().randrange(1_000_000)


def pytest_addoption(parser: pytest.Parser) -> None:
    chaos = parser.getgroup("chaos")
    chaos.addoption("--long", action="store_true", help="hurt for minutes instead of seconds")
    chaos.addoption("--seeds", type=int, help="how many seeds each seeded chaos test runs with")
    chaos.addoption("--seed", type=int, help="the first of them")
    chaos.addoption("--hurt", type=float, help="for how many seconds mixed chaos does harm")
    chaos.addoption("--record", type=Path, help="add what each mixed chaos came to to this file")


def is_long(config: pytest.Config) -> bool:
    asked = os.environ.get("CHAOS_LONG", "") not in ("", "0")
    return asked or bool(config.getoption("--long", default=False))


def seeds_of(config: pytest.Config) -> list[int]:
    """The seeds of this run: the same small one each time, others by chance in a long run."""
    count = config.getoption("--seeds", default=None) or int(os.environ.get("CHAOS_SEEDS") or 1)
    first = config.getoption("--seed", default=None) or int(os.environ.get("CHAOS_SEED") or 0)
    first = first or (CHANCE if is_long(config) else 1)
    return list(range(first, first + max(1, count)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`seed` runs a test once for each seed; `one_seed` once, for tests that take minutes."""
    seeds = seeds_of(metafunc.config)
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds, ids=lambda seed: f"seed{seed}")
    if "one_seed" in metafunc.fixturenames:
        metafunc.parametrize("one_seed", seeds[:1], ids=lambda seed: f"seed{seed}")


@pytest.fixture
def long(pytestconfig: pytest.Config) -> bool:
    """Whether this is the long version."""
    return is_long(pytestconfig)


@pytest.fixture
def stage(direct_database: str, fresh_database: str, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Makes stages on the test's own database; whatever happens, their processes end with the test."""
    yield from _stages(direct_database, tmp_path, through=fresh_database)


def _stages(url: str, home: Path, through: str | None = None) -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def make(seed: int, **options: Any) -> Stage:
        made.append(Stage(url, home, seed, **({"through": through} | options)))
        return made[-1]

    yield make
    for stage in made:
        stage.close()


@pytest.fixture
def own_server() -> Iterator[Cluster]:
    """A server that may be stopped in the middle of everything, with an empty schema in it."""
    server = Cluster(max_connections=400)
    try:
        server.start_migrated()
        yield server
    finally:
        server.destroy()


@pytest.fixture
def stage_there(own_server: Cluster, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Makes stages on the server that may be hurt."""
    yield from _stages(own_server.url, tmp_path)


@pytest.fixture
def proxy_to() -> Iterator[Callable[[str], Proxy]]:
    """Makes proxies before other servers."""
    made: list[Proxy] = []

    def make(url: str) -> Proxy:
        made.append(Proxy(url, lambda _: None))
        made[-1].start()
        return made[-1]

    yield make
    for proxy in made:
        proxy.stop()


@pytest.fixture
def proxy(fresh_database: str) -> Iterator[Proxy]:
    """A proxy before the test's own database; it cuts nothing until it is given a rule."""
    proxy = Proxy(fresh_database, lambda _: None)
    proxy.start()
    yield proxy
    proxy.stop()
