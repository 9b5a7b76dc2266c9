"""How the work goes: rates, waits, durations, full lanes. What could not be read is None, never zero."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rota._core.depths import Depths
from rota._core.job import State
from rota._core.numbers import Figures, LaneTotal, Summary, TenantTotal
from rota._core.series import Chart, TenantSeries, charted, step_for
from rota.admin.bulk import Matched
from rota.admin.reads import Reads
from rota.admin.scope import OutOfScope
from rota.errors import RotaError, StoreError
from rota.explaining import seen

if TYPE_CHECKING:
    from rota._core.explanation import WorkerSeen
    from rota._core.happening import Share
    from rota.stores.contract import Count, SessionRecord
    from rota.stores.numbers_contract import Head

T = TypeVar("T")

COUNTED = 100_000
"""So many waiting jobs are counted, and so many dead ones; of more, a count says `capped`. What runs is exact."""
HOUR = 3600.0
TOLD_APART = 5
"""So many tenants have a colour of their own in a picture of who takes how much."""


class QueueView(NamedTuple):
    """One queue: what waits in it, and how it goes."""

    queue: str
    pending: int | None
    """Jobs that wait, due or not; None: unknown."""
    running: int | None
    dead: int | None
    oldest_wait: timedelta | None
    """How long its oldest due job waits; None: nothing is due, or unknown."""
    slots: int | None
    """Slots of living workers that may serve it; None: unknown."""
    done: Summary | None
    """What ended in the time that was asked for; None: unknown."""
    target: float | None = None
    """How many seconds a due job should wait at most, if the app says so."""
    due_known: bool = True
    """Whether it is known if something is due in it."""

    @property
    def late(self) -> bool | None:
        """Whether its jobs wait longer than they should; None: it has no target, or nothing is known."""
        if self.target is None:
            return None
        waits = [None if self.oldest_wait is None else self.oldest_wait.total_seconds()]
        waits.append(None if self.done is None else self.done.wait(0.95))
        if self.done is None and waits[0] is None:
            return None
        return any(wait is not None and wait > self.target for wait in waits)


class Overview(NamedTuple):
    """How the whole stands and goes. Each part is None when it could not be read; `unknown` says why."""

    now: datetime
    since: float
    counts: Sequence[Count] | None
    capped: bool
    heads: Sequence[Head] | None
    figures: Figures | None
    workers: Sequence[WorkerSeen] | None
    targets: Mapping[str, float | None] | None
    unknown: Mapping[str, str]
    """What could not be read, and why."""

    def jobs(self, *states: State, queue: str | None = None) -> int | None:
        """How many jobs are in these states, in one queue or in all; None: unknown."""
        if self.counts is None:
            return None
        return sum(
            count.jobs for count in self.counts if count.state in states and queue in (None, count.queue)
        )

    @property
    def retrying(self) -> Matched | None:
        """How many jobs wait for another attempt; None: unknown, also where none was seen among some of them."""
        if self.counts is None:
            return None
        found = Matched(sum(count.retrying for count in self.counts), _waiting(self.counts) >= COUNTED)
        return None if found.capped and not found.jobs else found

    @property
    def oldest_wait(self) -> timedelta | None:
        """How long the job that is due longest has waited; None when nothing is due, or it is unknown."""
        due = [self.now - head.oldest for head in self.heads or () if head.oldest <= self.now]
        return max(due, default=None)

    @property
    def lanes(self) -> Sequence[LaneTotal] | None:
        return None if self.figures is None else self.figures.lanes

    def queues(self) -> list[QueueView]:
        """Every queue that has work, had some in this time, or is served by name."""
        names = {count.queue for count in self.counts or ()} | {head.queue for head in self.heads or ()}
        done = {} if self.figures is None else self.figures.by_queue()
        names |= done.keys() | {queue for worker in self.workers or () for queue in worker.queues or ()}
        return [self._queue(name, done) for name in sorted(names)]

    def _queue(self, name: str, done: Mapping[str, Summary]) -> QueueView:
        oldest = next((head.oldest for head in self.heads or () if head.queue == name), None)
        slots = None
        if self.workers is not None:
            slots = sum(worker.slots_for(name) for worker in self.workers)
        return QueueView(
            name,
            self.jobs(State.PENDING, queue=name),
            self.jobs(State.RUNNING, queue=name),
            self.jobs(State.DEAD, queue=name),
            self.now - oldest if oldest is not None and oldest <= self.now else None,
            slots,
            None if self.figures is None else done.get(name, Summary.of(())),
            (self.targets or {}).get(name),
            self.heads is not None,
        )


class Numbers(Reads):
    """The questions about rates and times."""

    async def overview(self, since: float = HOUR) -> Overview:
        """Everything at once, of the last so many seconds. What cannot be read is None; nothing at all is an error."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "the overview")
        unknown: dict[str, str] = {}
        errors: list[RotaError] = []

        async def known(what: str, read: Awaitable[T]) -> T | None:
            try:
                return await read
            except StoreError as error:
                unknown[what] = str(error)
                errors.append(error)
                return None

        now = await self.store.now()
        counts, heads, figures, sessions, queues = await asyncio.gather(
            known("counts", self.store.counts()),
            known("heads", self.store.heads()),
            known("figures", self.store.figures(since)),
            known("workers", self.store.sessions()),
            known("targets", self.store.queues()),
        )
        if len(errors) == 5:
            raise errors[0]
        return Overview(
            now,
            since,
            counts,
            counts is not None and capped(counts),
            heads,
            figures,
            None if sessions is None else _living(sessions, now),
            None if queues is None else {queue.name: queue.target_seconds for queue in queues},
            unknown,
        )

    async def figures(self, since: float = HOUR) -> Figures:
        """What all workers did in the last so many seconds, added up."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "what queues and tasks did")
        return await self.store.figures(since)

    async def series(
        self,
        since: float = HOUR,
        step: float | None = None,
        queue: str | None = None,
        task: str | None = None,
    ) -> Chart:
        """The same along time, for charts: slices of `step` seconds, or of a length that can be read at a glance."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "what queues and tasks did")
        length = step_for(since) if step is None else step
        return charted(await self.store.series(since, length, queue=queue, task=task, apart=False))

    async def depths(self, since: float = HOUR, step: float | None = None) -> Depths:
        """How deep the queues were along time, in the slices of `series`. What nobody looked at is None."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "how deep the queues were")
        return await self.store.depths(since, step_for(since) if step is None else step)

    async def tenant_series(self, since: float = HOUR, step: float | None = None) -> TenantSeries:
        """For whom attempts ran along time, in the slices of `series`: who took most of it, and the rest."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "what other tenants take")
        length = step_for(since) if step is None else step
        return await self.store.tenant_series(since, length, top=TOLD_APART)

    async def running_by_tenant(self) -> Sequence[Share]:
        """For whom jobs run now, by queue and tenant, the most first."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "what other tenants take")
        return await self.store.running_by_tenant()

    async def tenants(self, since: float = HOUR) -> Sequence[TenantTotal]:
        """What was done for each tenant in the last so many seconds, the busiest first."""
        found = (await self.store.figures(since)).tenants
        return sorted(found, key=lambda total: (-total.jobs, total.tenant))


def capped(counts: Sequence[Count]) -> bool:
    """Whether counting stopped before the end."""
    dead = sum(count.jobs for count in counts if count.state is State.DEAD)
    return dead >= COUNTED or _waiting(counts) >= COUNTED


def _waiting(counts: Sequence[Count]) -> int:
    return sum(count.jobs for count in counts if count.state not in (State.DEAD, State.RUNNING))


def _living(sessions: Sequence[SessionRecord], now: datetime) -> list[WorkerSeen]:
    return [seen(record) for record in sessions if record.ended_at is None and record.lease_until > now]
