"""The blocking entries: one worker that owns its process, on its own or as the child of a supervisor."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rota.worker.host import Host
from rota.worker.lanes import Lanes
from rota.worker.worker import Worker

if TYPE_CHECKING:
    from rota.worker.supervisor.leash import Leash
    from rota.worker.supervisor.wire import Facts

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
    return _run(app, None, lanes=lanes, tasks=tasks, tenant=tenant, queues=queues)


def run_child(app: Host, leash: Leash, **options: Any) -> int:
    """The same in a child of the supervisor: it hears its stops through the leash.

    SIGTERM and SIGINT only ever stop it gracefully: systemd sends them to every
    process of a service, and the supervisor's own word must not count as the second.
    """
    code = _run(app, leash, **options)
    leash.bye(code)
    return code


def _run(app: Host, leash: Leash | None, **options: Any) -> int:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_serve(app, leash, options))
    finally:
        # Not asyncio.run: it would wait for ever for a handler that ignores its cancellation.
        loop.run_until_complete(_leave(loop))
        asyncio.set_event_loop(None)
        loop.close()


async def _serve(app: Host, leash: Leash | None, options: dict[str, Any]) -> int:
    shown = None
    if leash is not None:
        shown = leash.shown({name: task.timeout for name, task in app.tasks.items()})
    worker = Worker(app, shown=shown, **options)
    loop = asyncio.get_running_loop()
    greeting = None

    def asked_to_stop() -> None:
        worker.stop(now=worker.stopping and leash is None)

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, RuntimeError):  # not on this platform, or not in the main thread
            loop.add_signal_handler(number, asked_to_stop)
    if leash is not None:
        leash.on_stop(lambda **how: _tell(loop, worker, **how))
        worker.on_order = leash.ordered
        greeting = asyncio.create_task(_greet(leash, worker, options))
    # What is loaded by now stays for good: the collector need not walk it again and again.
    gc.collect()
    gc.freeze()
    try:
        return await worker.run()
    finally:
        if greeting is not None:
            greeting.cancel()
        await app.store.close()


async def _greet(leash: Leash, worker: Worker, options: dict[str, Any]) -> None:
    await worker.ready()
    leash.ready(_facts(worker, options))


def _facts(worker: Worker, options: dict[str, Any]) -> Facts:
    from rota.stores.opening import address_of
    from rota.worker.supervisor.wire import Facts

    app, only = worker.host, options.get("tasks")
    settings = app.settings
    return Facts(
        url=address_of(app.store),
        store=app.store.name,
        lease=settings.lease,
        beat=settings.beat,
        grace=settings.grace,
        stop_grace=settings.stop_grace,
        stall=settings.stall,
        tasks={name: task.timeout for name, task in app.tasks.items()},
        slots=sum(lane.slots for lane in worker.lanes),
        only=None if only is None else tuple(only),
        queues=worker.desk.queues,
        tenant=options.get("tenant"),
    )


def _tell(loop: asyncio.AbstractEventLoop, worker: Worker, **how: bool) -> None:
    with suppress(RuntimeError):  # the loop is closed: it has ended already
        loop.call_soon_threadsafe(lambda: worker.stop(**how))


async def _leave(loop: asyncio.AbstractEventLoop) -> None:
    left = [task for task in asyncio.all_tasks(loop) if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=LEFTOVERS)
    await loop.shutdown_asyncgens()
