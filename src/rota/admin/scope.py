"""What one tenant may see and do: a store that knows of nobody else. A verb that is not named here is refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from rota._core.actions import Audit, AuditFilter, Change
from rota._core.dead_letter import DeadFilter, DeadLetter, Death, FailureGroup, hourly
from rota._core.job import Job, NewJob
from rota._core.numbers import Figures
from rota._core.review import Landed, Review, ReviewChange, Reviewed
from rota.errors import JobNotFound, NotSupported, OperationNotFound, StoreError

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.explanation import Standing
    from rota._core.happening import Stints
    from rota._core.job_log import LogTail
    from rota._core.operation import Operation, OperationState, Progress
    from rota._core.queue import Queue
    from rota._core.retention import ArchivedJob
    from rota._core.suspects import ParkedTask
    from rota._core.task_spec import TaskSpec
    from rota.stores.contract import Attempt, Enqueued, JobFilter, SessionRecord, Settled, Store
    from rota.stores.tally_contract import Tally

LOOKED_AT = 2000
"""So many of a tenant's newest dead letters are grouped, and so many of his operations known."""
ROUND, ROUNDS = 500, 20
"""So many audit rows of all tenants are looked at in one go, and so often, to find enough of one tenant's."""
PAGE_ROUNDS = 3
"""So often for one page, which can be gone on from."""
HOUR = timedelta(hours=1)


class OutOfScope(NotSupported):
    """Asked in the name of one tenant, and about all of them."""

    def __init__(self, tenant: str, what: str) -> None:
        StoreError.__init__(
            self,
            f"{what} is about all tenants, and it was asked for tenant {tenant!r} alone. Ask without a tenant, "
            f"or about single jobs.",
        )


class Walked(NamedTuple):
    """Some rows of the audit, and how far it was looked at."""

    rows: list[Audit]
    stopped: int | None
    """The place where looking was given up before there were enough; None: there are enough, or no more."""


async def walked(store: Store, wanted: AuditFilter) -> Walked:
    """The audit rows that match, newest first, as far as one call looks."""
    if isinstance(store, TenantScope):
        return await store._walked(wanted, PAGE_ROUNDS)  # noqa: SLF001 - no verb of stores, and only for who asks so
    return Walked(await store.audit_trail(wanted), None)


def within(store: Store, tenant: str) -> Store:
    """The store as this tenant may use it: jobs of others are not there, and what is about all is refused."""
    return cast("Store", TenantScope(store, tenant))


class TenantScope:
    """The verbs that a tenant may use; each asks the store for his own only, or looks at what it answers."""

    def __init__(self, store: Store, tenant: str) -> None:
        self.name, self.tenant, self._store = store.name, tenant, store

    def __getattr__(self, verb: str) -> NoReturn:
        if verb.startswith("_"):
            raise AttributeError(verb)
        raise OutOfScope(self.tenant, verb)

    async def now(self) -> datetime:
        return await self._store.now()

    # Jobs

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        if any(job.tenant != self.tenant for job in jobs):
            raise OutOfScope(self.tenant, "a job of somebody else")
        return await self._store.enqueue(jobs)

    async def get(self, job_ids: Sequence[UUID]) -> list[Job]:
        return [job for job in await self._store.get(job_ids) if job.tenant == self.tenant]

    async def archived(self, job_ids: Sequence[UUID], /) -> list[ArchivedJob]:
        return [row for row in await self._store.archived(job_ids) if row.tenant == self.tenant]

    async def find(self, wanted: JobFilter) -> list[Job]:
        if wanted.tenant not in (None, self.tenant):
            return []
        return await self._store.find(wanted._replace(tenant=self.tenant))

    async def count_found(self, wanted: JobFilter, *, cap: int) -> int:
        if wanted.tenant not in (None, self.tenant):
            return 0
        return await self._store.count_found(wanted._replace(tenant=self.tenant), cap=cap)

    async def tally(self, tenant: str | None = None, *, cap: int) -> list[Tally]:
        return await self._store.tally(self.tenant, cap=cap) if tenant in (None, self.tenant) else []

    async def attempts(self, job_id: UUID, *, limit: int | None = None) -> list[Attempt]:
        return await self._store.attempts(job_id, limit=limit) if await self.get([job_id]) else []

    async def logs(self, job_id: UUID, /) -> list[LogTail]:
        return await self._store.logs(job_id) if await self.get([job_id]) else []

    async def change(self, change: Change, audit: Audit) -> Settled:
        if change.job.tenant != self.tenant:
            raise JobNotFound(change.job.id)
        return await self._store.change(change, audit)

    async def standing(self, job: Job, *, cap: int) -> Standing:
        if job.tenant != self.tenant:
            raise JobNotFound(job.id)
        standing = await self._store.standing(job, cap=cap)
        inside = standing.inside
        return standing if inside is None or await self.get([inside]) else standing._replace(inside=None)

    # What is code, not data: which tasks there are, and who works

    async def tasks(self) -> list[TaskSpec]:
        return await self._store.tasks()

    async def parked_tasks(self) -> list[ParkedTask]:
        """How the last of them died may be told in words of another tenant's job."""
        return [row._replace(what="") for row in await self._store.parked_tasks()]

    async def sessions(self) -> list[SessionRecord]:
        """Those that work for everybody, and his own. Who asked one to go, and why, is between its operators."""
        seen = [one for one in await self._store.sessions() if one.tenant in (None, self.tenant)]
        return [
            one
            if one.order is None
            else one._replace(order=one.order._replace(by="an operator", reason=None))
            for one in seen
        ]

    async def stints(self, session_id: UUID, since: datetime, *, limit: int) -> Stints:
        """What a worker that serves everybody did for him."""
        whole = await self._store.stints(session_id, since, limit=limit)
        return whole._replace(found=[stint for stint in whole.found if stint.tenant == self.tenant])

    async def queues(self) -> list[Queue]:
        """None: what is expected of a queue is between its operators."""
        return []

    # Dead letters

    async def dead_letter(self, job_id: UUID) -> DeadLetter | None:
        found = await self._store.dead_letter(job_id)
        return found if found is not None and found.job.tenant == self.tenant else None

    async def dead_letters(self, wanted: DeadFilter) -> list[DeadLetter]:
        if wanted.tenant not in (None, self.tenant):
            return []
        return await self._store.dead_letters(wanted._replace(tenant=self.tenant))

    async def count_dead_letters(self, wanted: DeadFilter, *, cap: int) -> int:
        if wanted.tenant not in (None, self.tenant):
            return 0
        return await self._store.count_dead_letters(wanted._replace(tenant=self.tenant), cap=cap)

    async def deaths(self, wanted: DeadFilter) -> list[Death]:
        if wanted.tenant not in (None, self.tenant):
            return []
        return await self._store.deaths(wanted._replace(tenant=self.tenant))

    async def failure_groups(self, wanted: DeadFilter) -> list[FailureGroup]:
        """Of his newest dead letters only: the store's own groups are of all tenants together."""
        reviews = wanted.reviews or (Review.PENDING,)
        asked = DeadFilter(reviews, wanted.group, wanted.task, limit=LOOKED_AT)
        found = grouped(await self.deaths(asked), await self.now())
        return found[: wanted.limit]

    async def failure_hours(self, fingerprints: Sequence[str], *, hours: int) -> dict[str, list[int]]:
        """Of his newest dead letters only, as their groups."""
        now = await self.now()
        died: dict[str | None, list[datetime]] = {}
        for death in await self.deaths(DeadFilter(since=now - hours * HOUR, limit=LOOKED_AT)):
            died.setdefault(death.fingerprint, []).append(death.died)
        return {name: hourly(died.get(name, ()), now, hours) for name in fingerprints}

    async def change_review(self, change: ReviewChange, audit: Audit) -> Reviewed:
        if await self.dead_letter(change.job_id) is None:
            return Reviewed(Landed.FENCED, None)
        return await self._store.change_review(change, audit)

    async def reprocess(self, change: ReviewChange, job: NewJob, audits: Sequence[Audit]) -> Reviewed:
        if job.tenant != self.tenant or await self.dead_letter(change.job_id) is None:
            return Reviewed(Landed.FENCED, None)
        return await self._store.reprocess(change, job, audits)

    # Bulk operations: his are those on his own jobs and dead letters

    async def begin_operation(self, operation: Operation, audit: Audit) -> None:
        if operation.wanted.tenant not in (None, self.tenant):
            raise OutOfScope(self.tenant, f"an operation on {operation.noun}s of {operation.wanted.tenant!r}")
        mine = operation._replace(wanted=operation.wanted._replace(tenant=self.tenant))
        await self._store.begin_operation(mine, audit)

    async def operations(
        self, *, operation_id: UUID | None = None, tenant: str | None = None, limit: int = 20
    ) -> list[Operation]:
        if tenant not in (None, self.tenant):
            return []
        return await self._store.operations(operation_id=operation_id, tenant=self.tenant, limit=limit)

    async def advance_operation(
        self, operation_id: UUID, driver: UUID, progress: Progress, *, finished: bool = False
    ) -> bool:
        await self._own(operation_id)
        return await self._store.advance_operation(operation_id, driver, progress, finished=finished)

    async def steer_operation(
        self, operation_id: UUID, to: OperationState, audit: Audit, *, driver: UUID | None = None
    ) -> Operation | None:
        await self._own(operation_id)
        return await self._store.steer_operation(operation_id, to, audit, driver=driver)

    async def _own(self, operation_id: UUID) -> None:
        if not await self.operations(operation_id=operation_id, limit=1):
            raise OperationNotFound(operation_id)

    # The audit

    async def audit(
        self, job_id: UUID | None = None, *, about: str | None = None, limit: int = 50
    ) -> list[Audit]:
        return await self.audit_trail(AuditFilter(job_id=job_id, about=about, limit=limit))

    async def audit_trail(self, wanted: AuditFilter) -> list[Audit]:
        """What was done to his jobs that are still there, and by his operations."""
        return (await self._walked(wanted, ROUNDS)).rows

    async def _walked(self, wanted: AuditFilter, rounds: int) -> Walked:
        """Rows do not say whose they are, so that those of all are looked at until there are enough of his."""
        if wanted.job_id is not None and not await self.get([wanted.job_id]):
            return Walked([], None)
        mine: list[Audit] = []
        step, his = wanted, None
        for _ in range(rounds):
            rows = await self._store.audit_trail(step._replace(limit=ROUND))
            if his is None and any(row.job_id is None and row.about is not None for row in rows):
                his = {one.about for one in await self.operations(limit=LOOKED_AT)}
            mine += await self._his(rows, his or set())
            if len(mine) >= wanted.limit or len(rows) < ROUND:
                return Walked(mine[: wanted.limit], None)
            step = step._replace(before=rows[-1].place)
        return Walked(mine, step.before)

    async def _his(self, rows: Sequence[Audit], operations: set[str]) -> list[Audit]:
        """Those about his jobs, and about these operations of his."""
        jobs = {row.job_id for row in rows if row.job_id is not None}
        own: set[Any] = {job.id for job in await self.get(list(jobs))} | operations
        mine = (row for row in rows if (row.about if row.job_id is None else row.job_id) in own)
        return [row._replace(origin=None) for row in mine]  # addresses of those who run it are not his

    async def note(self, audit: Audit) -> None:
        if audit.job_id is None or not await self.get([audit.job_id]):
            raise OutOfScope(self.tenant, "an audit row about others")
        await self._store.note(audit)

    # Numbers

    async def figures(self, since: float) -> Figures:
        """His own attempts; what lanes, queues and tasks did is about everybody, and left out."""
        whole = await self._store.figures(since)
        mine = tuple(total for total in whole.tenants if total.tenant == self.tenant)
        return Figures(whole.since, whole.until, tenants=mine)


def grouped(deaths: Sequence[Death], now: datetime) -> list[FailureGroup]:
    """These deaths by fingerprint; the group that was seen last first."""
    groups: dict[str, list[Death]] = {}
    for death in deaths:
        if death.fingerprint is not None:
            groups.setdefault(death.fingerprint, []).append(death)
    found = [_group(name, sorted(group, key=_age), now) for name, group in groups.items()]
    return sorted(found, key=lambda group: (group.last_seen, group.fingerprint), reverse=True)


def _group(name: str, deaths: Sequence[Death], now: datetime) -> FailureGroup:
    """One group of deaths, oldest first."""
    times, newest = [death.died for death in deaths], deaths[-1]
    return FailureGroup(
        name,
        newest.task,
        newest.error_class,
        newest.error_type,
        newest.frame,
        newest.message,
        len(deaths),
        times[0],
        times[-1],
        sum(time > now - HOUR for time in times),
        sum(now - 2 * HOUR < time <= now - HOUR for time in times),
        newest.job_id,
    )


def _age(death: Death) -> tuple[datetime, UUID]:
    return death.died, death.job_id
