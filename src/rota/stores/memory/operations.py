"""Bulk operations as records, and the audit by filter."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from rota._core.actions import Audit, AuditFilter
from rota._core.operation import Operation, OperationState, Progress

if TYPE_CHECKING:
    from rota.stores.memory.book import Book


def begin(book: Book, operation: Operation, audit: Audit, now: datetime) -> None:
    if operation.id not in book.operations:
        book.operations[operation.id] = operation._replace(began_at=now, updated_at=now)
        book.tell(audit, now)


def listed(book: Book, operation_id: UUID | None, tenant: str | None, limit: int) -> list[Operation]:
    found = [
        one
        for one in book.operations.values()
        if operation_id in (None, one.id) and tenant in (None, one.wanted.tenant)
    ]
    found.sort(key=lambda one: one.id, reverse=True)
    return found[:limit]


def advance(
    book: Book, operation_id: UUID, driver: UUID, progress: Progress, *, finished: bool, now: datetime
) -> bool:
    """Note how far its driver came, if it is still his."""
    found = book.operations.get(operation_id)
    if found is None or found.driver != driver or found.state is not OperationState.RUNNING:
        return False
    state = OperationState.FINISHED if finished else OperationState.RUNNING
    book.operations[operation_id] = found._replace(progress=progress, state=state, updated_at=now)
    return True


def steer(
    book: Book, operation_id: UUID, to: OperationState, audit: Audit, *, driver: UUID | None, now: datetime
) -> Operation | None:
    """Stop it, or let it go on under another driver."""
    found = book.operations.get(operation_id)
    if found is None or found.state is OperationState.FINISHED:
        return None
    if to is OperationState.STOPPED and found.state is to:
        return None
    steered = found._replace(state=to, driver=driver or found.driver, updated_at=now)
    book.operations[operation_id] = steered
    book.tell(audit, now)
    return steered


def forget(book: Book, before: datetime) -> None:
    """Let go of operations that ended or were stopped before that; the audit still tells of them."""
    for one in list(book.operations.values()):
        if (
            one.state is not OperationState.RUNNING
            and one.updated_at is not None
            and one.updated_at <= before
        ):
            del book.operations[one.id]


def trail(book: Book, wanted: AuditFilter) -> list[Audit]:
    """The audit rows that match, newest first."""
    exact = ("actor", "action", "job_id", "about", "correlation_id")
    placed = [row._replace(place=place) for place, row in enumerate(book.audit, 1)]
    rows = [
        row
        for row in reversed(placed[: None if wanted.before is None else max(0, wanted.before - 1)])
        if all(getattr(wanted, name) in (None, getattr(row, name)) for name in exact)
        and row.at is not None
        and (wanted.since is None or row.at >= wanted.since)
        and (wanted.until is None or row.at <= wanted.until)
    ]
    return rows[: wanted.limit]
