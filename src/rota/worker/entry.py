"""The blocking entry: one worker that owns its process and listens to signals."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Iterable
from contextlib import suppress

from rota.worker.host import Host
from rota.worker.lanes import Lanes
from rota.worker.worker import Worker

LEFTOVERS = 1.0
"""Seconds that handlers left behind get before the loop is closed under them."""


def run(
    app: Host,
    *,
    lanes: Lanes | None = None,
    tasks: Iterable[str] | None = None,
    tenant: str | None = None,
    queues: Iterable[str] | None = None,
) -> int:
    """Run a worker until SIGTERM or SIGINT; a second signal stops it at once. Answers the exit code.

    0: every job that was begun has ended. 1: running jobs were interrupted
    at the end of the grace (or by the second signal) and handed back, unharmed.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(app, lanes, tasks, tenant, queues))
    finally:
        # Not asyncio.run: it would wait for ever for a handler that ignores its cancellation.
        loop.run_until_complete(_leave(loop))
        asyncio.set_event_loop(None)
        loop.close()


async def _serve(
    app: Host,
    lanes: Lanes | None,
    tasks: Iterable[str] | None,
    tenant: str | None,
    queues: Iterable[str] | None,
) -> int:
    worker = Worker(app, lanes=lanes, tasks=tasks, tenant=tenant, queues=queues)
    loop = asyncio.get_running_loop()

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, RuntimeError):  # not on this platform, or not in the main thread
            loop.add_signal_handler(number, lambda: worker.stop(now=worker.stopping))
    # What is loaded by now stays for good: the collector need not walk it again and again.
    gc.collect()
    gc.freeze()
    try:
        return await worker.run()
    finally:
        await app.store.close()


async def _leave(loop: asyncio.AbstractEventLoop) -> None:
    left = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=LEFTOVERS)
    await loop.shutdown_asyncgens()
