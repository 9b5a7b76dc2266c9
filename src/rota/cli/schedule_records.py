"""Schedules as rows, fields and JSON records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from rota._core.redaction import redacted, redacted_text
from rota.cli.records import AUDIT_HEADERS, audit_row
from rota.cli.words import ago, span
from rota.errors import ScheduleError

if TYPE_CHECKING:
    from rota._core.schedule import ScheduleRecord, TickRecord
    from rota.admin.schedules import ScheduleView

HEADERS = ("name", "status", "time", "zone", "task", "next", "last", "its job")


class Line(NamedTuple):
    """A schedule as one line, for scripts, people and JSON."""

    row: tuple[Any, ...]
    record: dict[str, Any]

    def shown(self, now: datetime) -> tuple[str, ...]:
        """For people: times as seen from now."""
        *words, upcoming, last, state = self.row
        return (*map(str, words), ago(upcoming, now), ago(last, now), state or "")


def line(record: ScheduleRecord, now: datetime, ticks: Sequence[TickRecord]) -> Line:
    from rota.admin.schedules import upcoming

    spec, status = record.effective, record.status(now)
    try:
        coming = upcoming(spec, now, 1) if status == "active" else []
    except ScheduleError:  # its zone is unknown here, say: one such must not hide the others; `show` says why
        coming = []
    last = ticks[0] if ticks else None
    row = (
        record.name,
        status,
        spec.timing,
        spec.tz,
        spec.task,
        coming[0].due if coming else None,
        last.tick if last else None,
        _outcome(last),
    )
    names = ("name", "status", "time", "zone", "task", "next", "last", "last_outcome")
    values: dict[str, Any] = dict(zip(names, row, strict=True))
    values["last_job"] = str(last.job_id) if last and last.job_id else None
    values["edits"] = record.edits.said
    return Line(row, values)


def details(view: ScheduleView) -> dict[str, Any]:
    """A schedule and its history as JSON."""
    record, spec = view.record, view.record.effective
    policy = ("jitter", "overlap", "misfire", "cap", "grace", "windows")
    return line(record, view.now, view.ticks).record | {name: getattr(spec, name) for name in policy} | {
        "arguments": payload(record),
        "code": {name: getattr(record.spec, name) for name in ("timing", "tz", *policy)},
        "paused_at": record.paused_at,
        "paused_by": record.paused_by,
        "paused_because": _because(record),
        "seen_at": record.seen_at,
        "published_at": record.published_at,
        "version": record.version,
        "ticks": [
            {
                "tick": seen.tick,
                "origin": seen.origin.value,
                "outcome": seen.fate.value,
                "job_id": str(seen.job_id) if seen.job_id else None,
                "state": seen.state,
            }
            for seen in view.ticks
        ],
        "upcoming": [tick._asdict() for tick in view.upcoming],
        "audit": [done.told() for done in view.audit],
    }  # fmt: skip


def fields(view: ScheduleView) -> tuple[list[tuple[str, object]], dict[str, str]]:
    """A schedule's own parts for `show`, and the words that a person sees in place of some of them."""
    from rota.schedule_times import times_of

    record, now, spec = view.record, view.now, view.record.effective
    status = record.status(now)
    pairs: list[tuple[str, object]] = [
        ("name", record.name),
        ("status", status),
        ("task", spec.task),
        ("time", spec.timing),
        ("in words", times_of(spec.timing, spec.tz).words()),
        ("zone", spec.tz),
        ("jitter", span(spec.jitter) if spec.jitter else None),
        ("overlap", spec.overlap.value),
        (
            "misfire",
            f"{spec.misfire.value} (at most {spec.cap})" if spec.misfire == "all" else spec.misfire.value,
        ),
        ("grace", span(spec.grace)),
        ("windows", spec.windows),
        ("edited", edited(record) or None),
        ("paused", record.paused_at),
        ("paused by", record.paused_by),
        ("because", _because(record)),
        ("published", record.published_at),
        ("seen", record.seen_at),
        ("next", view.upcoming[0].due if view.upcoming and status == "active" else None),
        ("version", record.version),
    ]
    words = {
        name: f"{value:%Y-%m-%d %H:%M:%S %Z} ({ago(value, now)})"
        for name, value in pairs
        if isinstance(value, datetime)
    }
    if status == "absent":
        words["status"] = (
            f"absent: no running worker has it since {ago(record.seen_at, now)}, so it does not tick"
        )
    return pairs, words


def parts(view: ScheduleView) -> list[tuple[str, tuple[str, ...], Sequence[tuple[object, ...]]]]:
    """The tables of `show`: title, headers, rows."""
    ticks = [
        (f"{seen.tick:%Y-%m-%d %H:%M:%S}", seen.origin.value, _outcome(seen), seen.job_id or "")
        for seen in view.ticks
    ]
    coming = [
        (f"{t.due:%Y-%m-%d %H:%M:%S}", f"{t.local:%a %Y-%m-%d %H:%M:%S %Z}", t.note) for t in view.upcoming
    ]
    return [
        ("Last ticks", ("UTC", "by", "became", "job"), ticks),
        ("Next ticks", ("UTC", "local", "note"), coming),
        ("What people did", AUDIT_HEADERS, [audit_row(done, view.now) for done in view.audit]),
    ]


def payload(record: ScheduleRecord) -> Any:
    """Its arguments, as everybody may see them."""
    return redacted(json.loads(record.effective.template_json).get("payload", {}))


def edited(record: ScheduleRecord) -> str:
    """What operators set, in one line."""
    return ", ".join(f"{name}={_short(value)}" for name, value in record.edits.said.items())


def _short(value: object) -> str:
    return "; ".join(value) or "none" if isinstance(value, tuple) else str(value)


def _outcome(tick: TickRecord | None) -> str:
    if tick is None:
        return ""
    return tick.state.value if tick.state is not None else tick.fate.value


def _because(record: ScheduleRecord) -> str | None:
    """Why it rests, without the secrets that somebody put into it."""
    return None if record.paused_because is None else redacted_text(record.paused_because)
