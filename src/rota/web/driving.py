"""Bulk operations that somebody began over HTTP, driven here until they end, are stopped, or this server stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from rota._core.retention import Pruning
from rota.errors import RotaError
from rota.web.problems import Problem

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from rota._core.operation import Operation
    from rota.admin import Admin

log = logging.getLogger("rota.web")

DRIVEN = 50
DRIVEN_EACH = 10
"""So many operations go on here: of all, and of one caller."""
TRUST = 1.0
"""For so many seconds whoever began one is believed to be somebody who may."""


class Drivers:
    """The operations that this server drives. One that is cut off stands as stopped, and can be resumed."""

    def __init__(self, counts: Callable[[str], Awaitable[bool]]) -> None:
        self._counts = counts
        """Whether what a caller began may go on, by what his limits are counted by."""
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._coming: list[str] = []
        self._turns = asyncio.Semaphore(1)

    @contextmanager
    def room(self, caller: str) -> Iterator[None]:
        """Room for one more, kept while it is begun; refused where too many go on."""
        here = [*self._tasks.values(), *self._coming]
        if len(here) >= DRIVEN or here.count(caller) >= DRIVEN_EACH:
            raise Problem(
                429,
                "too-many-operations",
                f"Too many operations go on here; you may have {DRIVEN_EACH}. "
                "Wait for one, stop one, or use one with a wider filter.",
                headers={"Retry-After": "10"},
            )
        self._coming.append(caller)
        try:
            yield
        finally:
            self._coming.remove(caller)

    def start(
        self, admin: Admin, operation: Operation, caller: str, counts: Callable[[], Awaitable[bool]]
    ) -> None:
        """Drive it from now on, in turns with the others, as long as its caller `counts`."""
        task = asyncio.create_task(self._drive(admin, operation, counts))
        self._tasks[task] = caller
        task.add_done_callback(self._tasks.pop)

    def start_purge(self, admin: Admin, reason: str | None, caller: str) -> None:
        """Let go of what is past its time, in small batches, as long as its caller counts; the audit says how much."""
        task = asyncio.create_task(self._purge(admin, reason, caller))
        self._tasks[task] = caller
        task.add_done_callback(self._tasks.pop)

    async def idle(self) -> None:
        """Until none is driven any more."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Let go of all of them: what was done is noted, and the rest can be resumed."""
        await asyncio.sleep(0)  # one that has not begun would not know that it was stopped
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _purge(self, admin: Admin, reason: str | None, caller: str) -> None:
        purging = asyncio.create_task(admin.prune(Pruning(), reason=reason))

        async def end() -> None:
            purging.cancel()

        watching = asyncio.create_task(_end_in_time(lambda: self._counts(caller), end))
        try:
            await purging
        except RotaError as error:
            log.warning("the purge stopped: %s. `rota prune` goes on with it.", error)
        except asyncio.CancelledError:
            if not watching.done():  # this server stops
                raise
            log.warning("the purge stopped: its token counts no more. `rota prune` goes on with it.")
        except Exception:
            log.exception("the purge stopped")
        finally:
            watching.cancel()

    async def _drive(self, admin: Admin, operation: Operation, counts: Callable[[], Awaitable[bool]]) -> None:
        async def end() -> None:
            await admin.stop_operation(operation.id, reason="its token counts no more", quietly=True)

        watching = asyncio.create_task(_end_in_time(counts, end))
        try:
            await admin.drive(operation, turns=self._turns)
        except RotaError as error:
            log.warning(
                "operation %s stopped: %s. `rota operations resume %s` goes on with it.",
                operation.id,
                error,
                operation.id,
            )
        except Exception:
            log.exception("operation %s stopped", operation.id)
        finally:
            watching.cancel()


async def _end_in_time(counts: Callable[[], Awaitable[bool]], end: Callable[[], Awaitable[Any]]) -> None:
    """End it when the token behind it counts no more: whoever revokes one means all that it does."""
    while True:
        await asyncio.sleep(TRUST)
        with suppress(RotaError):  # the store may be away: then nothing is done either
            if not await counts():
                await end()
                return


def drivers_of(site: Starlette) -> Drivers:
    """Those of this application."""
    found: Drivers | None = getattr(site.state, "drivers", None)
    if found is None:
        found = site.state.drivers = Drivers(site.state.desk.door.still_counts)
    return found
