"""The verbs about dead letters, operations, the audit, tokens and watching: each goes to the module that knows it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
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
from rota._core.token import Token
from rota.stores.postgres.dead_letters import DeadLetters
from rota.stores.postgres.operations import Operations
from rota.stores.postgres.seals import Seals
from rota.stores.postgres.tokens import Tokens
from rota.stores.postgres.watching import Watching

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connections
    from rota.stores.postgres.keyring import Keyring


class Ledger(NamedTuple):
    """What one event loop needs for them."""

    letters: DeadLetters
    operations: Operations
    tokens: Tokens
    seals: Seals
    watching: Watching

    @classmethod
    def on(cls, connections: Connections, keys: Keyring) -> Ledger:
        return cls(
            DeadLetters(connections, keys),
            Operations(connections),
            Tokens(connections),
            Seals(connections),
            Watching(connections),
        )


class Account:
    """A part of the PostgreSQL store: `stores/dead_letter_contract.py` has the promises."""

    def _ledger(self) -> Ledger:
        raise NotImplementedError

    async def dead_letter(self, job_id: UUID) -> DeadLetter | None:
        return await self._ledger().letters.one(job_id)

    async def dead_letters(self, wanted: DeadFilter) -> list[DeadLetter]:
        return await self._ledger().letters.find(wanted)

    async def count_dead_letters(self, wanted: DeadFilter, *, cap: int) -> int:
        return await self._ledger().letters.count(wanted, cap)

    async def deaths(self, wanted: DeadFilter) -> list[Death]:
        return await self._ledger().letters.deaths(wanted)

    async def failure_groups(self, wanted: DeadFilter) -> list[FailureGroup]:
        return await self._ledger().letters.groups(wanted)

    async def failure_hours(self, fingerprints: Sequence[str], *, hours: int) -> dict[str, list[int]]:
        return await self._ledger().letters.hours(fingerprints, hours)

    async def change_review(self, change: ReviewChange, audit: Audit) -> Reviewed:
        return await self._ledger().letters.change(change, audit)

    async def reprocess(self, change: ReviewChange, job: NewJob, audits: Sequence[Audit]) -> Reviewed:
        return await self._ledger().letters.reprocess(change, job, audits)

    async def settle_reviews(self) -> tuple[int, int]:
        return await self._ledger().letters.settle()

    async def begin_operation(self, operation: Operation, audit: Audit) -> None:
        await self._ledger().operations.begin(operation, audit)

    async def operations(
        self, *, operation_id: UUID | None = None, tenant: str | None = None, limit: int = 20
    ) -> list[Operation]:
        return await self._ledger().operations.listed(operation_id, tenant, limit)

    async def advance_operation(
        self, operation_id: UUID, driver: UUID, progress: Progress, *, finished: bool = False
    ) -> bool:
        return await self._ledger().operations.advance(operation_id, driver, progress, finished=finished)

    async def steer_operation(
        self, operation_id: UUID, to: OperationState, audit: Audit, *, driver: UUID | None = None
    ) -> Operation | None:
        return await self._ledger().operations.steer(operation_id, to, audit, driver)

    async def audit_trail(self, wanted: AuditFilter) -> list[Audit]:
        return await self._ledger().letters.trail(wanted)

    async def note(self, audit: Audit) -> None:
        await self._ledger().operations.note(audit)

    async def seals(self, after: int, *, limit: int) -> list[Sealed]:
        return await self._ledger().seals.found(after, limit)

    async def unsealed(self) -> int | None:
        return await self._ledger().seals.missing()

    async def create_token(self, token: Token, audit: Audit) -> None:
        await self._ledger().tokens.create(token, audit)

    async def tokens(self, *, token_id: str | None = None) -> list[Token]:
        return await self._ledger().tokens.listed(token_id)

    async def revoke_token(self, token_id: str, by: str, audit: Audit) -> Token | None:
        return await self._ledger().tokens.revoke(token_id, by, audit)

    async def note_token_used(self, token_id: str) -> None:
        await self._ledger().tokens.note_used(token_id)

    async def running(self, *, limit: int) -> list[Work]:
        return await self._ledger().watching.running(limit)

    async def running_by_tenant(self) -> list[Share]:
        return await self._ledger().watching.running_by_tenant()

    async def happened(self, mark: Mark, wanted: HappeningFilter, *, limit: int) -> Happened:
        return await self._ledger().watching.happened(mark, wanted, limit)

    async def stints(self, session_id: UUID, since: datetime, *, limit: int) -> Stints:
        return await self._ledger().watching.stints(session_id, since, limit)

    async def room(self) -> Room:
        return await self._ledger().watching.room()

    async def note_room(self) -> bool:
        return await self._ledger().watching.note_room()

    async def room_series(self, since: float, step: float) -> list[RoomSample]:
        return await self._ledger().watching.room_series(since, step)

    async def code_versions(self, *, limit: int) -> list[CodeVersion]:
        return await self._ledger().watching.code_versions(limit)

    async def refuses_changes(self) -> str | None:
        return await self._ledger().watching.refuses_changes()

    async def payload_sizes(self, *, cap: int) -> list[PayloadSize]:
        return await self._ledger().watching.payload_sizes(cap)
