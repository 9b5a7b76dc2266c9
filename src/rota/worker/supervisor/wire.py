"""The words between a supervisor and its children: one JSON object a line, a handful in a child's whole life."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Facts(NamedTuple):
    """What a child says of its app once it works; the supervisor itself never imports the app."""

    url: str | None
    """The store's address; None when the store lives inside the child, where nobody else can reach it."""
    store: str
    lease: float
    beat: float
    grace: float
    stop_grace: float
    """Seconds that a handler has to end after it was told to."""
    stall: float
    tasks: Mapping[str, float | None]
    """Each task's timeout, in the order in which the block counts them."""
    slots: int
    only: tuple[str, ...] | None = None
    """The tasks that it takes, where it does not take all."""
    queues: tuple[str, ...] | None = None
    tenant: str | None = None

    @property
    def names(self) -> list[str]:
        return list(self.tasks)


class Failed(NamedTuple):
    """A child could not start, and trying again would not help."""

    message: str
    code: int
    shown: str | None = None
    """The whole text for people, where the message alone is not all of it."""


READY, FAILED, ORDERED, BYE = "ready", "failed", "ordered", "bye"
STOP, NOW, RETIRE = "stop", "now", "retire"


def line(word: str, **fields: Any) -> bytes:
    """One message, ready to be sent."""
    return json.dumps({"word": word, **fields}).encode() + b"\n"


def read(text: bytes) -> tuple[str, dict[str, Any]]:
    """The word of a message, and what belongs to it."""
    fields = json.loads(text)
    return fields.pop("word"), fields


def facts(fields: Mapping[str, Any]) -> Facts:
    lists = {name: tuple(fields[name]) if fields[name] is not None else None for name in ("only", "queues")}
    return Facts(**{**fields, **lists})
