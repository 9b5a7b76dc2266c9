"""Stack traces to be read: the cause chain taken apart, newest first, with the application's own frames marked."""

from __future__ import annotations

import re
from typing import NamedTuple

from rota._core.fingerprint import is_own

FRAME = re.compile(r'^[\s|+-]*File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
BECAUSE = "The above exception was the direct cause of the following exception:"
MEANWHILE = "During handling of the above exception, another exception occurred:"
LINKS = {BECAUSE: "caused by", MEANWHILE: "raised while handling"}
HEADING = "Traceback (most recent call last):"


class Line(NamedTuple):
    """One line, and whether it is of the application's own code."""

    text: str
    own: bool


class Place(NamedTuple):
    """Where in the application's own code it was raised."""

    where: str
    """`shop/jobs.py:104 in charge`."""
    code: str


class Part(NamedTuple):
    """One exception of the chain."""

    error: str
    """Its last line: type and message."""
    link: str | None
    """How it led to the one before it in this list; None: it is the one that was raised in the end."""
    lines: tuple[Line, ...]
    place: Place | None


def parts(stack: str | None) -> tuple[Part, ...]:
    """The exceptions of a trace, the one that ended the attempt first, then what caused it."""
    if not stack or not stack.strip():
        return ()
    blocks: list[tuple[str | None, list[str]]] = [(None, [])]
    for line in stack.splitlines():
        link = LINKS.get(line.strip())
        if link is not None:
            # What stands above the sentence is the cause of what stands below it.
            blocks[-1] = (link, blocks[-1][1])
            blocks.append((None, []))
        else:
            blocks[-1][1].append(line)
    return tuple(
        _part(link, lines) for link, lines in reversed(blocks) if any(line.strip() for line in lines)
    )


def _part(link: str | None, lines: list[str]) -> Part:
    kept = [line for line in lines if line.strip()]
    marked, own, place = [], False, None
    for at, line in enumerate(kept):
        frame = FRAME.match(line)
        if frame is not None:
            own = is_own(frame["path"])
            if own:
                code = kept[at + 1].strip() if at + 1 < len(kept) and not FRAME.match(kept[at + 1]) else ""
                file = "/".join(frame["path"].replace("\\", "/").split("/")[-2:])
                place = Place(f"{file}:{frame['line']} in {frame['function'] or '<module>'}", code)
        elif not line.startswith((" ", "|", "+")):
            own = False
        marked.append(Line(line, own))
    return Part(_error(kept), link, tuple(marked), place)


def _error(lines: list[str]) -> str:
    """What the exception said: all that follows the last frame."""
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].startswith((" ", "\t")) or lines[at].strip() == HEADING:
            return "\n".join(lines[at + 1 :]) or lines[-1].strip()
    return lines[-1].strip()
