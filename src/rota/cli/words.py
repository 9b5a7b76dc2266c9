"""Values in the words of people: cleaned text, ages, lengths of time. Pure: tested without a terminal."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

from rota._core.lengths import ago, last, many, percent, span

__all__ = ["ago", "as_json", "cell", "clean", "last", "many", "percent", "plain", "span"]

# Escape sequences first, as a whole (a bare ESC would leave "[31m" behind), then every control code, then the marks
# that turn text round. Stored text comes from handlers and payloads: it must not steer the reader's terminal.
_SEQUENCE = re.compile(
    r"\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # operating system commands: titles, links, the clipboard
    r"|\x1b[PX^_].*?(?:\x1b\\|\x9c|$)"  # device strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # colours, cursor moves, erasing
    r"|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_UNSAFE_IN_JSON = re.compile(r"[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """Stored text without anything that a terminal obeys; line ends and tabs stay."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def cell(value: object) -> str:
    """One field of a tab-separated line: clean, and without tabs or line ends of its own."""
    return " ".join(clean(plain(value)).split()) if value is not None else ""


def plain(value: object) -> str:
    """A value as scripts want it: times in ISO, lists by comma."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (tuple, list)):
        return ",".join(plain(inner) for inner in value)
    return "" if value is None else str(value)


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """JSON that is exact, readable in any language, and still cannot steer a terminal."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=_jsonable)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _jsonable(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return plain(value)
