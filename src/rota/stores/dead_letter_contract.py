"""The promises of a store about dead letters, bulk operations on them, and the audit. Conformance tests quote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from rota._core.actions import Audit, AuditFilter
from rota._core.dead_letter import DeadFilter, DeadLetter, Death, FailureGroup
from rota._core.job import NewJob
from rota._core.operation import Operation, OperationState, Progress
from rota._core.review import ReviewChange, Reviewed
from rota._core.seal import Sealed
from rota.stores.token_contract import Tokens


class DeadLetters(Protocol):
    """What every store promises of dead jobs and their review."""

    async def dead_letter(self, job_id: UUID) -> DeadLetter | None:
        """The dead job with this id, or None when no dead job has it."""
        ...

    async def dead_letters(self, wanted: DeadFilter) -> list[DeadLetter]:
        """The dead jobs that match, newest first, at most `limit`."""
        ...

    async def count_dead_letters(self, wanted: DeadFilter, *, cap: int) -> int:
        """How many dead jobs match, counted up to `cap`."""
        ...

    async def deaths(self, wanted: DeadFilter) -> list[Death]:
        """Of the same jobs as `dead_letters`, in the same order, how and when each died: no payload is read."""
        ...

    async def failure_groups(self, wanted: DeadFilter) -> list[FailureGroup]:
        """The matching dead jobs by fingerprint, the group that was seen last first, at most `limit` groups.

        Of the filter, only `reviews`, `group`, `task` and `limit` count; no
        reviews means those that wait for one.
        """
        ...

    async def failure_hours(self, fingerprints: Sequence[str], *, hours: int) -> dict[str, list[int]]:
        """How many dead jobs of each of these groups died in each of the last hours, oldest first, in whatever review.

        The last number is that of the hour until now. Each group is counted up
        to the store's cap, the newest first.
        """
        ...

    async def change_review(self, change: ReviewChange, audit: Audit) -> Reviewed:
        """Apply a review if the version still holds, and record it in the audit: both or neither.

        `already` when this very review was applied before; then nothing is
        recorded again.
        """
        ...

    async def reprocess(self, change: ReviewChange, job: NewJob, audits: Sequence[Audit]) -> Reviewed:
        """Store the new job of a dead one, if the version still holds, with the review and the audits: all or nothing.

        The keys of the dead job pass to the new one, which takes its own
        idempotency key besides where that is another. `already`, with the job
        that is there, when the dead one is being reprocessed: a second click
        makes no second job. `NotUnique` when another job has taken its unique
        key meanwhile.
        """
        ...

    async def settle_reviews(self) -> tuple[int, int]:
        """Close the reviews whose new job completed, and reopen those whose new job did not; each with its audit.

        How many were moved, and how many are still being reprocessed. Safe to run twice at once.
        """
        ...


class Operations(Protocol):
    """What every store promises of bulk operations."""

    async def begin_operation(self, operation: Operation, audit: Audit) -> None:
        """Store a new operation, with its audit. Repeating it changes nothing."""
        ...

    async def operations(
        self, *, operation_id: UUID | None = None, tenant: str | None = None, limit: int = 20
    ) -> list[Operation]:
        """The operations, newest first, of all or on one tenant's dead letters alone; or the one with this id."""
        ...

    async def advance_operation(
        self, operation_id: UUID, driver: UUID, progress: Progress, *, finished: bool = False
    ) -> bool:
        """Note how far its driver came, if it still runs under this driver; whether it does (so: go on)."""
        ...

    async def steer_operation(
        self, operation_id: UUID, to: OperationState, audit: Audit, *, driver: UUID | None = None
    ) -> Operation | None:
        """Stop a running operation, or let an unfinished one go on under a new driver; None: it cannot.

        The audit is recorded with it.
        """
        ...


class AuditTrail(Protocol):
    """What every store promises of the audit: rows are added, and never changed or removed."""

    async def audit_trail(self, wanted: AuditFilter) -> list[Audit]:
        """The audit rows that match, newest first, at most `limit`."""
        ...

    async def note(self, audit: Audit) -> None:
        """Record what somebody did that changed nothing else, such as a look at what is hidden from most."""
        ...

    async def seals(self, after: int, *, limit: int) -> list[Sealed]:
        """The seals of the audit behind a place, in their order, each with its row if it is there."""
        ...

    async def unsealed(self) -> int | None:
        """A row that was added past the chain, by its place in the audit; None: there is none."""
        ...


class Account(DeadLetters, Operations, AuditTrail, Tokens, Protocol):
    """All of it."""
