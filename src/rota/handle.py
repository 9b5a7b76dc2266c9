"""Handle: one enqueued job, as its producer holds it."""

from __future__ import annotations

import asyncio
import getpass
import socket
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from uuid import UUID

from rota._core.actions import Audit, Refusal, Verb, act
from rota._core.durations import Duration, seconds
from rota._core.ids import public_id
from rota._core.job import Job, State
from rota._core.retention import ARCHIVED, Archived
from rota._core.retry import Retry
from rota.current import inherited
from rota.errors import JobArchived, JobCancelled, JobChanged, JobDead, ResultTimeout
from rota.portal import Twin
from rota.stores.archive import missing
from rota.stores.contract import Answer, Store
from rota.watcher import ended

if TYPE_CHECKING:
    from rota._core.categories import Categories
    from rota._core.explanation import Explanation
    from rota._core.payload_rules import PayloadRules
    from rota.config import Settings
    from rota.pressure import Pressure

R_co = TypeVar("R_co", covariant=True)

_CANCEL_TRIES = 5
_UNCOMMITTED_PATIENCE = 10.0


class Home(Protocol):
    """What tasks and handles need of the app they belong to."""

    @property
    def store(self) -> Store: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def rules(self) -> PayloadRules: ...

    @property
    def categories(self) -> Categories: ...

    @property
    def pressure(self) -> Pressure | None: ...


class Handle(Generic[R_co]):
    """A stored job: await it for its result, ask for its status, cancel it."""

    __slots__ = ("_home", "_read", "_uncommitted", "created", "id")

    def __init__(
        self,
        home: Home,
        job_id: UUID,
        read: Callable[[Job], R_co],
        *,
        created: bool = True,
        uncommitted: bool = False,
    ) -> None:
        self.id = job_id
        self.created = created
        """False: this enqueue was a duplicate, and the handle is that of the job which was there already."""
        self._home = home
        self._read = read
        self._uncommitted = uncommitted

    @property
    def public_id(self) -> str:
        """The id as people read it aloud."""
        return public_id(self.id)

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.result().__await__()

    async def result(self, timeout: Duration | None = None) -> R_co:  # noqa: ASYNC109 - it bounds waiting for another process
        """Wait until the job has ended; what its function returned.

        Raises JobDead or JobCancelled when it ended so, and ResultTimeout after
        `timeout`; the job itself goes on then.
        """
        limit = None if timeout is None else seconds(timeout, "timeout")
        patience = _UNCOMMITTED_PATIENCE if self._uncommitted else 0.0
        try:
            async with asyncio.timeout(limit):
                job = await ended(self._home.store, self.id, patience=patience)
        except TimeoutError:
            job = await self.refresh()
            if not job.state.terminal:
                raise ResultTimeout(self.id, limit or 0.0, job.label(await self._home.store.now())) from None
        return self._outcome(job)

    def _outcome(self, job: Job) -> R_co:
        if job.state is State.DEAD:
            raise JobDead(job.id, job.error_class, job.error_message)
        if job.state is State.CANCELLED:
            raise JobCancelled(job.id, job.reason)
        return self._read(job)

    async def refresh(self) -> Job:
        """The job as it is stored now, with everything that is known of it."""
        found = await self._home.store.get([self.id])
        if not found:
            raise await missing(self._home.store, self.id)
        return found[0]

    async def status(self) -> State | Archived:
        """The job's state now; "archived" when retention let it go and only its summary is left."""
        try:
            return (await self.refresh()).state
        except JobArchived:
            return ARCHIVED

    async def cancel(self, reason: str | None = None) -> bool:
        """Stop the job: at once while it waits; a running one is asked to stop, and its worker confirms.

        False when it had ended already.
        """
        store = self._home.store
        for _ in range(_CANCEL_TRIES):
            job = await self.refresh()
            change = act(job, Verb.CANCEL, retry=Retry(), now=await store.now(), reason=reason)
            if isinstance(change, Refusal):
                return False
            audit = Audit(_actor(), Verb.CANCEL, job.id, reason, before=job.state)
            if (await store.change(change, audit)).answer is not Answer.FENCED:
                return True
        raise JobChanged(self.id, await self.status())

    async def explain(self) -> Explanation:
        """Why the job is not running, or that it is, in words, and what would unblock it: `print(...)` it."""
        from rota.explaining import explained

        return await explained(self._home.store, self.id)

    result_sync = Twin(result)
    refresh_sync = Twin(refresh)
    status_sync = Twin(status)
    cancel_sync = Twin(cancel)
    explain_sync = Twin(explain)

    def __repr__(self) -> str:
        return f"<Handle {self.id}{'' if self.created else ' (duplicate)'}>"


def _actor() -> str:
    """Who is named in the audit: the author in force here, else the process's user."""
    author = inherited().created_by
    if author:
        return author
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a container may run under a number that has no name
        return f"unknown@{socket.gethostname()}"
