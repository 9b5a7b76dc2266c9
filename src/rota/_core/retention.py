"""Retention: how long ended jobs are kept, by which policy, and what is left of them in the archive."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple
from uuid import UUID

from rota._core.job import Job, State

DAY = 86_400.0
AT_LEAST = 60.0
"""Whatever a policy says, a job stays so long after its end: whoever waits for it hears of it."""

Archived = Literal["archived"]
ARCHIVED: Final[Archived] = "archived"
"""The word for a job of which only its summary is left, in place of a state."""

FINISHED: Final = (State.COMPLETED.value, State.PARTIAL.value, State.CANCELLED.value)
PRUNED: Final = (*FINISHED, State.DEAD.value)
"""The states in which retention can let a job go; a dead one only when its review is closed."""
KEPT: Final = (*PRUNED, ARCHIVED)
"""What a policy can be about."""


class Policy(NamedTuple):
    """How long jobs are kept. What is None means any; of those that fit a job, the most specific counts."""

    keep: float | None
    """Seconds from a job's end (dead: from the end of its review); None: for ever."""
    state: str | None = None
    task: str | None = None
    tenant: str | None = None
    reason: str | None = None
    set_by: str = ""
    set_at: datetime | None = None

    @property
    def scope(self) -> tuple[str | None, str | None, str | None]:
        """What it is about; there is one policy for each."""
        return self.state, self.task, self.tenant

    @property
    def weight(self) -> int:
        """A tenant is more specific than a task, and a task than a state."""
        return 4 * (self.tenant is not None) + 2 * (self.task is not None) + (self.state is not None)

    def fits(self, state: str, task: str, tenant: str | None) -> bool:
        """Whether it is about such jobs."""
        return (
            (self.state is None or self.state == state)
            and (self.task is None or self.task == task)
            and (self.tenant is None or self.tenant == tenant)
        )

    @property
    def words(self) -> str:
        """What it is about, as people say it: `state=dead tenant=acme`, `all`."""
        said = zip(("state", "task", "tenant"), self.scope, strict=True)
        return " ".join(f"{name}={value}" for name, value in said if value is not None) or "all"


class Pruning(NamedTuple):
    """Which of the jobs that retention lets go are meant; every field narrows, but `older_than`."""

    states: tuple[str, ...] = ()
    task: str | None = None
    tenant: str | None = None
    older_than: float | None = None
    """Seconds that count in place of every policy, but not of those that keep for ever."""

    def fits(self, state: str, task: str, tenant: str | None) -> bool:
        return (
            (not self.states or state in self.states)
            and self.task in (None, task)
            and self.tenant in (None, tenant)
        )


EVERYTHING = Pruning()


class Foreseen(NamedTuple):
    """What one policy would let go now, of one state."""

    policy: Policy | None
    """None: no policy is about them, and the default counts."""
    state: str
    jobs: int
    bound: int
    """Those past their time that stay, because unfinished work refers to them."""
    oldest: datetime | None
    newest: datetime | None
    """When the first and the last of them ended."""


class Pruned(NamedTuple):
    """What a purge did."""

    finished: int = 0
    dead: int = 0
    busy: bool = False
    """True: somebody else purges at the moment, so nothing was done."""

    @property
    def jobs(self) -> int:
        return self.finished + self.dead


class ArchivedJob(NamedTuple):
    """What is left of a job: who it was for, how it ended and what it took. No arguments and no result."""

    id: UUID
    state: State
    """How it ended."""
    task: str
    queue: str
    tenant: str | None
    category: str | None
    subject: str | None
    external_id: str | None
    correlation_id: str | None
    parent_id: UUID | None
    created_by: str | None
    attempts: int
    losses: int
    created_at: datetime
    finished_at: datetime
    archived_at: datetime
    waited: float | None
    """Seconds that its last attempt was due before it began; None: it never began."""
    ran: float | None
    """Seconds that its last attempt took."""
    error_class: str | None
    review: str | None
    reviewed_by: str | None

    @property
    def words(self) -> str:
        """What became of it, in a sentence without its stop."""
        ended, gone = (moment.strftime("%Y-%m-%d %H:%M") for moment in (self.finished_at, self.archived_at))
        return (
            f"job {self.id} ({self.task}) ended {self.state.value} at {ended} UTC and was archived at {gone}: "
            "its arguments and its result are gone"
        )


def chosen(policies: Iterable[Policy], state: str, task: str, tenant: str | None) -> Policy | None:
    """The policy that counts for such a job, or None: the default does."""
    fitting = [policy for policy in policies if policy.fits(state, task, tenant)]
    return max(fitting, key=lambda policy: policy.weight, default=None)


def keep_of(policy: Policy | None, default: float, wanted: Pruning = EVERYTHING) -> float | None:
    """How long a job is kept after its end, in seconds; None: for ever."""
    if policy is not None and policy.keep is None:
        return None
    said = default if policy is None or policy.keep is None else policy.keep
    return max(said if wanted.older_than is None else wanted.older_than, AT_LEAST)


def archive_keep(policies: Iterable[Policy], default: float) -> float | None:
    """How long summaries are kept, in seconds; None: for ever."""
    return next((policy.keep for policy in policies if policy.state == ARCHIVED), default)


def let_go_at(ended: datetime, keep: float | None, *, exact: bool = False) -> datetime | None:
    """When a job may go; None: never. Whole days count from the end of the day (UTC) on which it ended.

    So a day's jobs go together, and their table at once.
    """
    if keep is None:
        return None
    if not exact and keep >= DAY and keep % DAY == 0:
        ended = ended.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return ended + timedelta(seconds=keep)


def summary(job: Job, at: datetime, reviewed_by: str | None = None) -> ArchivedJob:
    """What the archive keeps of an ended job."""
    assert job.finished_at is not None
    begun = job.claimed_at
    return ArchivedJob(
        job.id,
        job.state,
        job.task,
        job.queue,
        job.tenant,
        job.category,
        job.subject,
        job.external_id,
        job.correlation_id,
        job.parent_id,
        job.created_by,
        job.attempt,
        job.losses,
        job.created_at,
        job.finished_at,
        at,
        None if begun is None else max((begun - max(job.run_at, job.created_at)).total_seconds(), 0.0),
        None if begun is None else (job.finished_at - begun).total_seconds(),
        job.error_class,
        job.review,
        reviewed_by,
    )
