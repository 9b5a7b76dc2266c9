"""Alert: something that a person should know now, whatever else is done about it."""

from __future__ import annotations

from typing import NamedTuple


class Alert(NamedTuple):
    """What functions registered with `@app.alert` are given."""

    kind: str
    """`task_parked`."""
    subject: str
    """What it is about: the task's name."""
    message: str
    fix: str
    """What to do about it."""
