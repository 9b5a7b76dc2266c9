"""What is left of an archived job, as fields and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota._core.ids import public_id
from rota._core.retention import ARCHIVED
from rota.cli.words import ago, span

if TYPE_CHECKING:
    from datetime import datetime

    from rota._core.retention import ArchivedJob


def record(row: ArchivedJob) -> dict[str, Any]:
    """A summary as JSON: its state is `archived`, and `ended` says how the job ended."""
    fields = row._asdict()
    del fields["id"], fields["state"]
    first = {"id": str(row.id), "public_id": public_id(row.id), "state": ARCHIVED, "ended": row.state.value}
    return first | fields | {"parent_id": None if row.parent_id is None else str(row.parent_id)}


def fields(row: ArchivedJob, now: datetime) -> tuple[list[tuple[str, object]], dict[str, str]]:
    """A summary for `show`: values, and the words that a person sees in place of some of them."""
    pairs: list[tuple[str, object]] = [
        ("id", row.id),
        ("public id", public_id(row.id)),
        ("state", ARCHIVED),
        ("ended", row.state.value),
        ("task", row.task),
        ("queue", row.queue),
        ("attempts", row.attempts),
        ("tenant", row.tenant),
        ("category", row.category),
        ("subject", row.subject),
        ("external id", row.external_id),
        ("correlation", row.correlation_id or row.id),
        ("parent", row.parent_id),
        ("created by", row.created_by),
        ("created", row.created_at),
        ("finished", row.finished_at),
        ("archived", row.archived_at),
        ("waited", None if row.waited is None else span(row.waited)),
        ("ran for", None if row.ran is None else span(row.ran)),
        ("error class", row.error_class),
        ("review", row.review),
        ("reviewed by", row.reviewed_by),
    ]
    moments = {"created": row.created_at, "finished": row.finished_at, "archived": row.archived_at}
    words = {name: f"{at:%Y-%m-%d %H:%M:%S %Z} ({ago(at, now)})" for name, at in moments.items()}
    return pairs, words
