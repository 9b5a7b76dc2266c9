"""Values as pages show them: short, with their meaning; exact ones stand in titles."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from markupsafe import Markup

from rota._core.ids import public_id
from rota._core.lengths import ago, many, percent, span
from rota._core.lengths import size as size_of
from rota._core.redaction import redacted_text

UNKNOWN = "unknown"
NOTHING = "\u2013"
SECONDS = re.compile(r"[0-9]+(\.[0-9]+)? s")
ADDRESS = re.compile(r"""(https?://[^\s<>"'`{}|\\^]{1,500}[^\s<>"'`{}|\\^.,;:!?()\[\]])""")
COMMAND = re.compile(r"`[^`]+`|rota [^;`]+")
COMMAND_IN = re.compile(r"(`[^`]+`|(?:(?<=: )|^)rota [^;`]+)")


class Look(NamedTuple):
    """How a state is shown: never by its colour alone."""

    tone: str
    icon: str


LOOKS = {
    "pending": Look("wait", "clock"),
    "scheduled": Look("wait", "calendar"),
    "snoozed": Look("wait", "moon"),
    "retrying": Look("warn", "retry"),
    "parked": Look("warn", "lock"),
    "blocked": Look("warn", "lock"),
    "held": Look("warn", "hold"),
    "running": Look("run", "play"),
    "cancelling": Look("run", "stop"),
    "completed": Look("ok", "check"),
    "partial": Look("ok", "half"),
    "dead": Look("bad", "skull"),
    "failed": Look("bad", "cross"),
    "cancelled": Look("off", "stop"),
    "deleted": Look("off", "trash"),
    # reviews
    "pending_review": Look("bad", "eye"),
    "reprocessing": Look("run", "retry"),
    "resolved": Look("ok", "check"),
    "acknowledged": Look("warn", "check"),
    "discarded": Look("off", "trash"),
    # schedules, workers, operations
    "active": Look("ok", "play"),
    "paused": Look("warn", "hold"),
    "absent": Look("off", "cross"),
    "alive": Look("ok", "play"),
    "draining": Look("warn", "down"),
    "stopping": Look("warn", "stop"),
    "gone": Look("off", "cross"),
    "lost": Look("bad", "cross"),
    "late": Look("warn", "clock"),
    "no worker": Look("warn", "cross"),
    "stopped": Look("warn", "stop"),
    "finished": Look("ok", "check"),
}
"""Every word for a state that a page may show."""


def count(number: float | None, *, capped: bool = False) -> str:
    """`1,284`; what is not known is not zero."""
    if number is None:
        return UNKNOWN
    return f"{number:,.0f}" + ("+" if capped else "")


def length(value: timedelta | float | None) -> str:
    """`1.2s`, `3m 20s`; a dash where there is nothing to tell."""
    return NOTHING if value is None else span(value)


def share(value: float | None) -> str:
    """`4.2 %`."""
    return NOTHING if value is None else percent(value)


def when(moment: datetime | None, now: datetime) -> Markup:
    """How long ago, with the exact time in its title; scripts keep it current."""
    if moment is None:
        return Markup("{}").format(NOTHING)
    exact = moment.isoformat(timespec="milliseconds")
    title = moment.strftime("%Y-%m-%d %H:%M:%S %Z")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(exact, title, ago(moment, now))


def clock(moment: datetime | None) -> str:
    """`2026-11-15 14:05:07`, in the zone that it has."""
    return NOTHING if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


def short(job_id: Any) -> str:
    """The end of an id as people read it aloud: enough to tell jobs of one page apart."""
    return f"…{public_id(job_id)[-7:]}"


def pretty(value: Any) -> str:
    """JSON to be read, exact: numbers as they are stored."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def line(value: Any, most: int = 80) -> str:
    """JSON in one short line, for lists: `to=ann@example.org, number=7`."""
    if isinstance(value, dict):
        text = ", ".join(f"{name}={_inline(inner)}" for name, inner in value.items())
    else:
        text = _inline(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _inline(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def redacted(text: str | None) -> str | None:
    """What somebody wrote, without the secrets that he quoted."""
    return None if text is None else redacted_text(text)


def did(action: str) -> str:
    """An action of the audit as people say it: `acknowledged`. Those of dead letters carry where they happened."""
    return action.removeprefix("job_dlq_").replace("_", " ")


def became(text: str | None) -> str:
    """What the audit says something was or is: states in words, `7776000 s` as `90d`."""
    if text is None:
        return ""
    if SECONDS.fullmatch(text):
        return span(float(text.removesuffix(" s")))
    return text.replace("_", " ", 1) if text in LOOKS else text


def linked(text: str | None) -> Markup:
    """What somebody wrote, with the addresses in it to be followed: a ticket, a log, a chat."""
    parts = ADDRESS.split(text or "")
    return Markup("").join(
        Markup('<a href="{0}" rel="noopener noreferrer">{0}</a>').format(part)
        if ADDRESS.fullmatch(part)
        else part
        for part in parts
    )


def commands(text: str) -> Markup:
    """A sentence with what can be typed in it told apart: `so`, or after a colon up to the next semicolon."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part.strip("`")) if COMMAND.fullmatch(part) else part
        for part in COMMAND_IN.split(text)
    )


def size(number: int | None) -> str:
    """`4.2 kB`."""
    return NOTHING if number is None else size_of(number)


FILTERS: dict[str, Callable[..., Any]] = {
    "count": count,
    "span": length,
    "share": share,
    "when": when,
    "clock": clock,
    "short": short,
    "public": public_id,
    "pretty": pretty,
    "line": line,
    "size": size,
    "many": many,
    "sh": shlex.quote,
    "redacted": redacted,
    "commands": commands,
    "did": did,
    "became": became,
    "linked": linked,
}
