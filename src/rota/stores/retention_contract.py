"""The promises of a store about retention and the archive. Conformance tests quote the docstrings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from rota._core.actions import Audit
from rota._core.job import State
from rota._core.retention import ArchivedJob, Foreseen, Policy, Pruned, Pruning


class Retention(NamedTuple):
    """How long ended work is kept where no policy says otherwise, in seconds."""

    finished: float = 7 * 86_400.0
    dead_after_review: float = 30 * 86_400.0
    sessions: float = 86_400.0
    ticks: float = 30 * 86_400.0
    ticks_kept: int = 10_000
    """Of each schedule so many ticks stay, however old they are."""
    archive: float = 365 * 86_400.0
    """Summaries of jobs, from the day of their archiving."""

    def of(self, state: str) -> float:
        """The default for jobs that ended so."""
        return self.dead_after_review if state == State.DEAD else self.finished


class Tidied(NamedTuple):
    """What one round of the janitor did."""

    finished: int = 0
    """Finished jobs that went to the archive."""
    dead: int = 0
    keys: int = 0
    sessions: int = 0
    ticks: int = 0
    days: int = 0
    """Days of finished jobs that were empty and dropped, where a store has days."""
    archive: int = 0
    """Months of the archive that were dropped (memory: summaries)."""


class Retained(Protocol):
    """What every store promises of how long ended jobs are kept, and of what is left of them."""

    async def policies(self) -> list[Policy]:
        """The policies that people set, the most specific first."""
        ...

    async def set_policy(self, policy: Policy, audit: Audit, /) -> None:
        """Let a policy count, in place of the one about the same jobs; with its audit. Repeating it is harmless."""
        ...

    async def remove_policy(self, policy: Policy, audit: Audit, /) -> bool:
        """Take away the policy about the same jobs as this one, with its audit; whether there was one."""
        ...

    async def archived(self, job_ids: Sequence[UUID], /) -> list[ArchivedJob]:
        """What is left of the jobs with these ids that retention let go."""
        ...

    async def foresee(self, wanted: Pruning, retention: Retention, /) -> list[Foreseen]:
        """What `prune` would do now, by policy and state, exactly; nothing is changed."""
        ...

    async def prune(
        self, wanted: Pruning, retention: Retention, /, *, progress: Callable[[int], None] | None = None
    ) -> Pruned:
        """Move the jobs that are past their time to the archive, with their attempts and logs removed.

        Each job is either still whole or a summary in the archive, at any moment.
        A job never goes while something refers to it: unfinished children, or a
        dead letter whose work it does again; a child that is enqueued while the
        purge runs counts within half a minute. A dead one waits for its review.
        Keys stay for their window. Done in bounded steps with pauses, by one at a
        time; what was done stays done when it is stopped. `progress` hears how
        many are gone.
        """
        ...

    async def note(self, audit: Audit, /) -> None:
        """Add a row to the audit about something that is done in many steps; one for each `about` and action."""
        ...
