"""Bulk operations that somebody began over HTTP, driven here until they end, are stopped, or this server stops."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from rota.errors import RotaError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from rota._core.operation import Operation
    from rota.admin import Admin

log = logging.getLogger("rota.web")


class Drivers:
    """The operations that this server drives. One that is cut off stands as stopped, and can be resumed."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, admin: Admin, operation: Operation) -> None:
        """Drive it from now on."""
        task = asyncio.create_task(self._drive(admin, operation))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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

    async def _drive(self, admin: Admin, operation: Operation) -> None:
        try:
            await admin.drive(operation)
        except RotaError as error:
            log.warning(
                "operation %s stopped: %s. `rota dlq operations resume %s` goes on with it.",
                operation.id,
                error,
                operation.id,
            )
        except Exception:
            log.exception("operation %s stopped", operation.id)


def drivers_of(site: Starlette) -> Drivers:
    """Those of this application."""
    found: Drivers | None = getattr(site.state, "drivers", None)
    if found is None:
        found = site.state.drivers = Drivers()
    return found
