"""The three ways to run an app in a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from rota._core.durations import Duration
from rota.stores.opening import open_store
from rota.testing.clock import StandingClock
from rota.testing.kit import PATIENCE, InlineKit, Kit

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.stores.contract import Store
    from rota.testing.real_kit import RealKit


@contextmanager
def manual(app: Rota, *, slots: int = 1, timeout: Duration = PATIENCE) -> Iterator[Kit]:
    """Jobs wait in memory until `drain()`. Time stands still until `advance()`.

    `slots` is how many run at once, `timeout` how long a drain may take.
    """
    clock = StandingClock()
    kit = Kit(app, open_store("memory://", app.settings, clock=clock), clock, slots=slots, timeout=timeout)
    with stands_in(app, kit.front):
        yield kit


@contextmanager
def inline(
    app: Rota, *, raises: bool = True, slots: int = 1, timeout: Duration = PATIENCE
) -> Iterator[InlineKit]:
    """Every job runs where it is enqueued, before `enqueue()` returns.

    What a handler raises is raised from the outermost `enqueue()`, after its
    outcome was recorded; with `raises=False` it is only recorded. A job that is
    not due yet, or that was stored with `tx=`, waits for `drain()`.
    """
    clock = StandingClock()
    store = open_store("memory://", app.settings, clock=clock)
    kit = InlineKit(app, store, clock, raises=raises, slots=slots, timeout=timeout)
    with stands_in(app, kit.front):
        yield kit


@contextmanager
def real(
    app: Rota,
    url: str | None = None,
    *,
    fresh: bool = False,
    slots: int = 10,
    timeout: Duration = PATIENCE,
) -> Iterator[RealKit]:
    """A real worker on a real PostgreSQL, running from the first line of the block to its last.

    Without a `url` an embedded server is started, once for the whole test run,
    and the block gets an empty database of its own. With one, that database is
    used as it is: it must hold no unfinished jobs, which the worker would run.
    `fresh` empties Rota's tables there first.
    """
    from rota.testing.real_kit import opened

    with opened(app, url, fresh=fresh, slots=slots, timeout=timeout) as kit, stands_in(app, kit.front):
        yield kit


@contextmanager
def stands_in(app: Rota, store: Any) -> Iterator[None]:
    """Let the app use another store for a while."""
    before = app._store  # noqa: SLF001 - the app has no public way to change its store, and needs none but here
    app._store = cast("Store", store)  # noqa: SLF001
    try:
        yield
    finally:
        app._store = before  # noqa: SLF001
