"""The verbs about dead letters, operations, the audit, tokens and watching, each one step under the store's lock."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from uuid import UUID

from rota._core.actions import Audit, AuditFilter
from rota._core.dead_letter import DeadFilter, DeadLetter, Death, FailureGroup
from rota._core.happening import (
    CodeVersion,
    Happened,
    HappeningFilter,
    Mark,
    PayloadSize,
    Share,
    Stints,
    Work,
)
from rota._core.job import NewJob
from rota._core.operation import Operation, OperationState, Progress
from rota._core.review import ReviewChange, Reviewed
from rota._core.room import Room, RoomSample
from rota._core.seal import Sealed
from rota._core.series import checked
from rota._core.token import Token
from rota.stores.memory import dead_letters, operations, tokens, watching
from rota.stores.memory.book import Book


class Account:
    """A part of the memory store: `stores/dead_letter_contract.py` has the promises."""

    _book: Book

    def _step(self) -> AbstractContextManager[datetime]:
        raise NotImplementedError

    async def dead_letter(self, job_id: UUID) -> DeadLetter | None:
        with self._step():
            return dead_letters.one(self._book, job_id)

    async def dead_letters(self, wanted: DeadFilter) -> list[DeadLetter]:
        with self._step():
            return dead_letters.find(self._book, wanted)

    async def count_dead_letters(self, wanted: DeadFilter, *, cap: int) -> int:
        with self._step():
            return dead_letters.count(self._book, wanted, cap)

    async def deaths(self, wanted: DeadFilter) -> list[Death]:
        with self._step():
            return dead_letters.deaths(self._book, wanted)

    async def failure_groups(self, wanted: DeadFilter) -> list[FailureGroup]:
        with self._step() as now:
            return dead_letters.groups(self._book, wanted, now)

    async def failure_hours(self, fingerprints: Sequence[str], *, hours: int) -> dict[str, list[int]]:
        with self._step() as now:
            return dead_letters.hours(self._book, fingerprints, hours, now)

    async def change_review(self, change: ReviewChange, audit: Audit) -> Reviewed:
        with self._step() as now:
            return dead_letters.change(self._book, change, audit, now)

    async def reprocess(self, change: ReviewChange, job: NewJob, audits: Sequence[Audit]) -> Reviewed:
        with self._step() as now:
            return dead_letters.reprocess(self._book, change, job, audits, now)

    async def settle_reviews(self) -> tuple[int, int]:
        with self._step() as now:
            return dead_letters.settle(self._book, now)

    async def begin_operation(self, operation: Operation, audit: Audit) -> None:
        with self._step() as now:
            operations.begin(self._book, operation, audit, now)

    async def operations(
        self, *, operation_id: UUID | None = None, tenant: str | None = None, limit: int = 20
    ) -> list[Operation]:
        with self._step():
            return operations.listed(self._book, operation_id, tenant, limit)

    async def advance_operation(
        self, operation_id: UUID, driver: UUID, progress: Progress, *, finished: bool = False
    ) -> bool:
        with self._step() as now:
            return operations.advance(self._book, operation_id, driver, progress, finished=finished, now=now)

    async def steer_operation(
        self, operation_id: UUID, to: OperationState, audit: Audit, *, driver: UUID | None = None
    ) -> Operation | None:
        with self._step() as now:
            return operations.steer(self._book, operation_id, to, audit, driver=driver, now=now)

    async def audit_trail(self, wanted: AuditFilter) -> list[Audit]:
        with self._step():
            return operations.trail(self._book, wanted)

    async def note(self, audit: Audit) -> None:
        with self._step() as now:
            self._book.tell(audit, now)

    async def seals(self, after: int, *, limit: int) -> list[Sealed]:
        with self._step():
            found = self._book.seals[after : after + limit]
            return [Sealed(seal, self._book.audit[seal.row - 1]) for seal in found]

    async def unsealed(self) -> int | None:
        return None

    async def create_token(self, token: Token, audit: Audit) -> None:
        with self._step() as now:
            tokens.create(self._book, token, audit, now)

    async def tokens(self, *, token_id: str | None = None) -> list[Token]:
        with self._step():
            return tokens.listed(self._book, token_id)

    async def revoke_token(self, token_id: str, by: str, audit: Audit) -> Token | None:
        with self._step() as now:
            return tokens.revoke(self._book, token_id, by, audit, now)

    async def note_token_used(self, token_id: str) -> None:
        with self._step() as now:
            tokens.note_used(self._book, token_id, now)

    async def running(self, *, limit: int) -> list[Work]:
        with self._step():
            return watching.running(self._book, limit)

    async def running_by_tenant(self) -> list[Share]:
        with self._step():
            return watching.running_by_tenant(self._book)

    async def happened(self, mark: Mark, wanted: HappeningFilter, *, limit: int) -> Happened:
        with self._step() as now:
            return watching.happened(self._book, mark, wanted, limit, now)

    async def stints(self, session_id: UUID, since: datetime, *, limit: int) -> Stints:
        with self._step():
            return watching.stints(self._book, session_id, since, limit)

    async def room(self) -> Room:
        return Room("memory")

    async def note_room(self) -> bool:
        return False

    async def room_series(self, since: float, step: float) -> list[RoomSample]:
        checked(since, step)
        return []

    async def code_versions(self, *, limit: int) -> list[CodeVersion]:
        with self._step():
            return watching.code_versions(self._book, limit)

    async def refuses_changes(self) -> str | None:
        return None

    async def payload_sizes(self, *, cap: int) -> list[PayloadSize]:
        with self._step():
            return watching.payload_sizes(self._book, cap)
