"""Moments as people type them into a form: `2h` ago, or a date with or without a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rota._core.durations import seconds
from rota.web.problems import Problem


def moment(text: str | None, now: datetime, field: str) -> datetime | None:
    """What was meant; None: nothing was typed. Without a zone it is in UTC, as the command line has it."""
    typed = (text or "").strip()
    if not typed:
        return None
    try:
        return now - timedelta(seconds=seconds(typed))
    except (ValueError, OverflowError):
        pass
    try:
        found = datetime.fromisoformat(typed)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Problem(
            422,
            "bad-moment",
            f"{typed[:80]!r} in {field!r} is neither a length of time (30m, 2h, 7d: that long ago) nor a moment "
            "(2026-11-01, 2026-11-01T09:30).",
        ) from None


def needed_moment(text: str | None, now: datetime, field: str) -> datetime:
    found = moment(text, now, field)
    if found is None:
        raise Problem(422, "missing", f"Nothing was filled in for {field!r}. Go back and fill it in.")
    return found
