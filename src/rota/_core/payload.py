"""What a payload may hold, whoever writes it: bounded JSON that every store can keep exactly."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

WARN_BYTES = 10_240
LIMIT_BYTES = 262_144
DEPTH_LIMIT = 50


class PayloadWarning(UserWarning):
    """A payload that is stored, but should not be as it is: too large for a queue, or with secrets in it."""


def plain(text: str) -> bool:
    """Whether JSON `text` is so short and simple that nothing can be wrong with it, as most is."""
    return (
        len(text) <= 2 * DEPTH_LIMIT
        and text.isascii()
        and "\\" not in text
        and "N" not in text
        and "I" not in text
        and "\x00" not in text
    )


def problem(text: str, *, limit: int = LIMIT_BYTES) -> str | None:
    """Say why JSON `text` cannot be stored, or None. Looks closely only where a cheap look is suspicious."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        return (
            f"it is {size:,} bytes of JSON; the limit is {limit:,}. "
            "Store the content elsewhere and pass a reference to it"
        )
    # Before anything is parsed: a parser gives up on ten thousand levels with an error of its own.
    if text.count("[") + text.count("{") > DEPTH_LIMIT and _depth(text) > DEPTH_LIMIT:
        return f"it is nested more than {DEPTH_LIMIT} levels deep. Flatten it"
    if "\\u0000" in text or "\x00" in text:
        found = _walk(
            json.loads(text, strict=False), lambda value: isinstance(value, str) and "\x00" in value
        )
        if found:
            return f"{found} contains a NUL character, which PostgreSQL cannot store. Remove it"
    if "NaN" in text or "Infinity" in text:
        found = _walk(
            json.loads(text),
            lambda value: isinstance(value, float) and not isfinite(value),
        )
        if found:
            return f"{found} is NaN or infinite, which JSON has no word for. Pass None or a text instead"
    if "\\ud" in text.lower() or not _encodable(text):
        found = _walk(json.loads(text), lambda value: isinstance(value, str) and not _encodable(value))
        if found:
            return f"{found} contains a lone surrogate, which is not text. Decode it with errors='replace'"
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _walk(value: Any, guilty: Any, path: str = "") -> str | None:
    """The path of the first value that `guilty` finds, in the words of the payload."""
    if isinstance(value, dict):
        for name, inner in value.items():
            here = f"{path}.{name}" if path else str(name)
            if guilty(name):
                return f"the key {here!a}"
            found = _walk(inner, guilty, here)
            if found:
                return found
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            found = _walk(inner, guilty, f"{path}[{place}]")
            if found:
                return found
    elif guilty(value):
        return f"{path or 'the value'!s}"
    return None


def _depth(text: str) -> int:
    deepest = depth = 0
    in_string = escaped = False
    for symbol in text:
        if in_string:
            if escaped:
                escaped = False
            elif symbol == "\\":
                escaped = True
            elif symbol == '"':
                in_string = False
        elif symbol == '"':
            in_string = True
        elif symbol in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif symbol in "]}":
            depth -= 1
    return deepest
