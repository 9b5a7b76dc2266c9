"""The promises of a store about the sessions of workers. Conformance tests quote the docstrings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from rota._core.actions import Audit
from rota._core.job import Job
from rota._core.worker_order import OrderVerb, WorkerOrder


class SessionStart(NamedTuple):
    """One worker process's life as it introduces itself."""

    id: UUID
    host: str
    pid: int
    lanes: Mapping[str, int]
    tasks: tuple[str, ...]
    code_version: str | None = None
    user: str | None = None
    queues: Mapping[str, tuple[str, ...] | None] | None = None
    """The queues of each lane (None: every queue)."""
    tenant: str | None = None
    """The only tenant it works for."""
    memory: int | None = None
    """Bytes of memory that its process uses; None: it cannot know."""
    hears: bool = False
    """Whether it acts on the order that a beat answers."""


class SessionRecord(NamedTuple):
    """A session as the store sees it."""

    id: UUID
    host: str
    pid: int
    lanes: Mapping[str, int]
    started_at: datetime
    lease_until: datetime
    ended_at: datetime | None
    tasks: tuple[str, ...] = ()
    code_version: str | None = None
    queues: Mapping[str, tuple[str, ...] | None] | None = None
    """None: it did not say."""
    tenant: str | None = None
    memory: int | None = None
    """Bytes of memory that its process used when it last said so; None: it never did."""
    hears: bool = False
    order: WorkerOrder | None = None
    """What it was asked to do; it may not have heard of it yet."""


class Beat(NamedTuple):
    """The answer to a heartbeat."""

    alive: bool
    """False: the session has ended; nothing that it holds is its own any more."""
    cancel: tuple[UUID, ...] = ()
    """Held jobs that somebody asked to cancel."""
    lost: tuple[UUID, ...] = ()
    """Held jobs that are no longer this session's."""
    strays: tuple[Job, ...] = ()
    """Running jobs of this session that it did not name as held (a lost claim answer)."""
    order: OrderVerb | None = None
    """What somebody asked its worker to do. Every beat says so again: it is acted on once."""


class Sessions(Protocol):
    """What every store promises of worker sessions."""

    async def open_session(self, session: SessionStart, *, lease: float) -> None:
        """Begin a session; it is alive for `lease` seconds."""
        ...

    async def beat(
        self,
        session: UUID,
        *,
        lease: float,
        holding: Mapping[UUID, int],
        strays: bool = False,
        memory: int | None = None,
    ) -> Beat:
        """Prolong a living session and answer what its owner must know. An ended or expired one never returns.

        `holding` maps each held job to its version at the claim. `memory` is
        noted; without it what was said before stands.
        """
        ...

    async def order_worker(self, session: UUID, verb: OrderVerb, audit: Audit) -> bool:
        """Leave an order for a living session that hears orders, with its audit: both or neither; whether it was left.

        It stands for good, and no other replaces it, but that a stop may follow a drain.
        """
        ...

    async def end_session(self, session: UUID) -> None:
        """End a session now; jobs that it still owns are lost at once. Harmless when ended already."""
        ...

    async def end_expired(self) -> float | None:
        """End every session whose lease is past. Seconds until the next living lease ends, or None."""
        ...

    async def lost(self, *, limit: int) -> list[Job]:
        """Running jobs whose session has ended or is missing. A settle of them is fenced like any other."""
        ...

    async def sessions(self) -> list[SessionRecord]:
        """Living sessions, and those that ended lately."""
        ...
