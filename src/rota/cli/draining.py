"""`rota worker --drain`: watch what is left, and stop the worker when nothing is."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from rota._core.job import Job, State
from rota.admin import Admin
from rota.cli.words import many
from rota.errors import StoreError
from rota.stores.contract import JobFilter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from rota.app import Rota
    from rota.cli.output import Advance, Output
    from rota.stores.contract import Store

LOOK_EVERY = 0.3
LEAVE_SECONDS = 3.0
PAGE = 200
COUNTED = 1_000
"""A bar tells of so many jobs that are left; beyond that it says only that there are more."""
SHARE = 10
"""Of the time, counting takes at most one part in so many: the jobs come first."""
LOOKS = 2
"""Empty so many times in a row: a job may enqueue another just before it ends."""


class Scope(NamedTuple):
    """Which jobs the worker would take."""

    tasks: Collection[str]
    queues: Collection[str] | None
    tenant: str | None

    def wants(self, job: Job, now: datetime) -> bool:
        """Whether the job keeps a drain going: running, due, or waiting for another attempt."""
        if job.task not in self.tasks or (self.queues is not None and job.queue not in self.queues):
            return False
        return job.state is State.RUNNING or (job.parked is None and (job.run_at <= now or job.attempt > 0))


def without_schedules(app: Rota) -> None:
    """Keep the worker of this app from ticking: a drain empties the queue, and ticks would fill it again."""
    app._settings = app.settings.model_copy(update={"schedules": False})  # noqa: SLF001 - only a drain changes them


@contextmanager
def stopping_when_empty(store: Store, scope: Scope, output: Output) -> Iterator[None]:
    """Watch from a thread of its own; send this process SIGTERM once nothing is left to do.

    Its bar is taken off the terminal at the end of the block, also when somebody else ended the worker.
    """
    over = threading.Event()
    watcher = threading.Thread(
        target=lambda: asyncio.run(_watch(store, scope, output, over)), name="rota-drain", daemon=True
    )
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(LEAVE_SECONDS)


async def _watch(store: Store, scope: Scope, output: Output, over: threading.Event) -> None:
    watching = asyncio.create_task(_emptied(store, scope, output))
    try:
        while not (watching.done() or over.is_set()):
            await asyncio.wait([watching], timeout=LOOK_EVERY)
        if watching.done():
            await watching
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            watching.cancel()
            await asyncio.wait([watching])
    finally:
        await store.close()


async def _emptied(store: Store, scope: Scope, output: Output) -> None:
    await _begun(Admin(store, actor="rota worker --drain"))
    await until_empty(store, scope, output)


async def _begun(admin: Admin) -> None:
    """Wait until this process has a session: before that nobody would hear the signal."""
    while True:
        with suppress(StoreError):
            here = socket.gethostname(), os.getpid()  # in containers many workers have the same number
            if here in {(session.host, session.pid) for session in await admin.living()}:
                return
        await asyncio.sleep(LOOK_EVERY)


async def until_empty(store: Store, scope: Scope, output: Output) -> None:
    """Wait until no job keeps the drain going, with a bar where a person looks."""
    admin = Admin(store, actor="rota worker --drain")
    with output.progress("drain", None) as advance:
        bar = Bar(advance)
        empty, pause = 0, LOOK_EVERY
        while empty < LOOKS:
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                jobs = await left(admin, scope, at_most=COUNTED)
            except StoreError:  # the worker itself says so, and waits for the store to come back
                empty = 0
                continue
            empty = 0 if jobs else empty + 1
            pause = max(LOOK_EVERY, SHARE * (time.monotonic() - began))
            bar.look(jobs)


class Bar:
    """How far a drain is: what is left, of the most that was ever seen."""

    def __init__(self, advance: Advance) -> None:
        self.advance, self.most = advance, 0

    def look(self, jobs: int) -> None:
        self.most = max(self.most, jobs)
        if jobs >= COUNTED:
            self.advance(0, f"{COUNTED:,}+ jobs left")
        else:
            self.advance(self.most - jobs, f"{many(jobs, 'job')} left", total=self.most)


async def left(admin: Admin, scope: Scope, *, at_most: int = 1) -> int:
    """How many jobs keep the drain going, counted up to `at_most`. Jobs that are scheduled for later do not."""
    now = await admin.store.now()
    wanted = JobFilter(
        states=(State.RUNNING, State.PENDING), tenant=scope.tenant, oldest_first=True, limit=PAGE
    )
    jobs = 0
    while True:
        page = await admin.list(wanted)
        jobs += sum(scope.wants(job, now) for job in page)
        if jobs >= at_most or len(page) < PAGE:
            return min(jobs, at_most)
        wanted = wanted._replace(before=page[-1].id)
