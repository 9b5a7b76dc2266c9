"""What can be asked about jobs: lists, one job with its history, counts, and who is at work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rota._core.filtering import FilterError, parse
from rota._core.job import Job, State
from rota.admin.scope import within
from rota.errors import RotaError
from rota.explaining import explained
from rota.stores.archive import missing
from rota.stores.contract import JobFilter

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.actions import Audit
    from rota._core.explanation import Explanation
    from rota._core.job_filter import ArgumentIs
    from rota.stores.contract import Attempt, Count, SessionRecord, Store

CHILDREN_SHOWN = 20

K = TypeVar("K", bound=Hashable)


class HiddenArgument(FilterError):
    """Somebody who is not shown an argument looks for a value of it: each answer would tell whether he guessed it."""

    def __init__(self, argument: ArgumentIs) -> None:
        self.word = f"args.{'.'.join(argument.path)}:{argument.value}"
        RotaError.__init__(
            self,
            f"args.{'.'.join(argument.path)} cannot be searched for this value: it is hidden where jobs are shown. "
            "Look for another argument, a subject or a tag, or ask somebody who may reveal jobs.",
        )


class JobView(NamedTuple):
    """One job and all that is known of its life."""

    job: Job
    now: datetime
    attempts: Sequence[Attempt]
    """Those that did not succeed, oldest first."""
    audit: Sequence[Audit]
    """What people did to it, newest first."""
    children: Sequence[Job]
    """The jobs it enqueued, oldest first, at most `CHILDREN_SHOWN`."""

    @property
    def label(self) -> str:
        return self.job.label(self.now)


class Stats(NamedTuple):
    """How the store stands: unfinished and dead jobs per queue, task and state, and how long the oldest one waits."""

    counts: Sequence[Count]
    oldest_wait: timedelta | None
    """How long the pending job that is due longest has waited; None when nothing is due."""

    def by_state(self) -> dict[State, int]:
        return _summed((count.state, count.jobs) for count in self.counts)

    def by_queue(self) -> dict[tuple[str, State], int]:
        return _summed(((count.queue, count.state), count.jobs) for count in self.counts)

    def by_task(self) -> dict[tuple[str, State], int]:
        return _summed(((count.task, count.state), count.jobs) for count in self.counts)


class Reads:
    """The questions; none of them changes anything."""

    def __init__(self, store: Store, *, actor: str, tenant: str | None = None) -> None:
        self.store = store if tenant is None else within(store, tenant)
        self.actor = actor
        self.tenant = tenant
        """The only tenant that is answered about; None: all of them."""

    async def job(self, job_id: UUID) -> Job:
        """The job as it is now, or `JobNotFound` (`JobArchived` when its summary is left)."""
        found = await self.store.get([job_id])
        if not found:
            raise await missing(self.store, job_id)
        return found[0]

    async def show(self, job_id: UUID) -> JobView:
        """The job with its failed attempts, what people did to it, and the jobs it enqueued."""
        job = await self.job(job_id)
        return JobView(
            job,
            await self.store.now(),
            await self.store.attempts(job.id),
            await self.store.audit(job.id),
            await self.store.find(JobFilter(parent_id=job.id, oldest_first=True, limit=CHILDREN_SHOWN)),
        )

    async def explain(self, job_id: UUID) -> Explanation:
        """Why the job is not running, or that it is, and what would unblock it."""
        return await explained(self.store, job_id)

    async def stats(self) -> Stats:
        """Counts per queue, task and state; never reads the jobs themselves."""
        counts = await self.store.counts()
        due_since = min((count.oldest for count in counts if count.oldest is not None), default=None)
        if due_since is None:
            return Stats(counts, None)
        waited = await self.store.now() - due_since
        return Stats(counts, waited if waited >= timedelta(0) else None)

    async def living(self) -> Sequence[SessionRecord]:
        """The worker sessions that hold a lease now."""
        now = await self.store.now()
        return [
            seen for seen in await self.store.sessions() if seen.ended_at is None and seen.lease_until > now
        ]

    async def unserved(self) -> dict[str, int]:
        """Tasks with pending jobs that no living worker knows, and how many jobs wait for each.

        A worker that was asked to go takes none of them.
        """
        known = {name for session in await self.living() if session.order is None for name in session.tasks}
        waiting: Counter[str] = Counter()
        for count in await self.store.counts():
            if count.state is State.PENDING and count.task not in known:
                waiting[count.task] += count.jobs
        return dict(waiting)

    async def filter(
        self, words: str | Sequence[str], *, sees_hidden: bool = True, **fields: Any
    ) -> JobFilter:
        """Which jobs the words of the filter language mean, and `fields` besides; `FilterError` for a wrong word.

        Whoever does not see hidden arguments (`sees_hidden`) may not look for them either: `HiddenArgument`.
        """
        wanted = parse(words, now=await self.store.now(), **fields)
        for argument in wanted.args:
            if argument.hidden and not sees_hidden:
                raise HiddenArgument(argument)
        return wanted

    async def list(self, wanted: JobFilter) -> Sequence[Job]:
        """The jobs that match, newest first unless it says otherwise, at most `wanted.limit`."""
        return await self.store.find(wanted)


def _summed(pairs: Iterable[tuple[K, int]]) -> dict[K, int]:
    total: Counter[K] = Counter()
    for what, jobs in pairs:
        total[what] += jobs
    return dict(total)
