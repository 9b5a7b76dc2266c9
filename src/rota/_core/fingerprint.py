"""Which failures are alike: task, exception and the place in the application's own code. Pure text work."""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import PurePath
from typing import NamedTuple

_FRAME = re.compile(
    r'^[\s|+-]*File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+?))?$', re.MULTILINE
)
_LIBRARY = re.compile(
    r"[\\/](?:site-packages|dist-packages|lib[\\/]python\d[\w.]*)[\\/]|^<|[\\/]importlib[\\/]"
)
_OURS = str(PurePath(__file__).parent.parent)
_TOUR = str(PurePath("rota", "cli", "tour.py"))
"""Its tasks stand for those of an application."""
_IDS = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"  # a UUID
    r"|\b0x[0-9a-fA-F]+\b"
    r"|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b"  # a hash or another long id
    r"|\d+(?:[.,:_-]\d+)*"  # a number, a date, a time
)
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_SHOWN_PARTS = 2
FRAME_LIMIT = 200


class Fingerprint(NamedTuple):
    """A failure's kind: what a group of dead jobs has in common."""

    value: str
    """Twelve signs that stand for all of it."""
    error_type: str
    frame: str | None
    """The top frame of the application's code: `shop/mail.py in send`."""


def fingerprint(task: str, error_type: str, message: str, stack: str | None) -> Fingerprint:
    """The kind of a failure: its task, its exception and where in the application it was raised.

    Without a stack (a timeout, a lost worker, a person's kill) the message
    takes the place of the frame, with numbers, ids and quoted values left out.
    """
    frame = top_frame(stack)
    third = normalised(message) if frame is None else normalised(frame)[:FRAME_LIMIT]
    digest = blake2b(f"{task}\n{error_type}\n{third}".encode("utf-8", "replace"), digest_size=6)
    return Fingerprint(digest.hexdigest(), error_type, frame)


def top_frame(stack: str | None) -> str | None:
    """The last frame of the application itself; of a library only where there is no other.

    Line numbers are left out, and of the path all but the end: the same
    failure meets itself again after a deployment, and on another machine.
    """
    frames = [] if stack is None else list(_FRAME.finditer(stack))
    if not frames:
        return None
    own = [frame for frame in frames if not _foreign(frame["path"])]
    found = (own or frames)[-1]
    parts = PurePath(found["path"].replace("\\", "/")).parts[-_SHOWN_PARTS:]
    place = "/".join(part for part in parts if part != "/")
    return " ".join(f"{place} in {found['function'] or '<module>'}".split())[:FRAME_LIMIT]


def normalised(text: str) -> str:
    """A text without what differs from job to job: numbers, ids and quoted values become marks."""
    return " ".join(_IDS.sub("#", _QUOTED.sub("'…'", text)).split())


def is_own(path: str) -> bool:
    """Whether a file of a trace is of the application itself, not of a library or of this one."""
    return not _foreign(path)


def _foreign(path: str) -> bool:
    if path.endswith(_TOUR):
        return False
    return path.startswith(_OURS) or _LIBRARY.search(path) is not None
