"""What each tenant was shown, and the words that would give another one away."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple


class Shown(NamedTuple):
    """One answer: where it was asked, who asked (None: anybody who reads it), and all of it as text."""

    surface: str
    to: str | None
    text: str


def canary(tenant: str) -> str:
    """The word that is in every field of this tenant's work, and nowhere else."""
    return f"canary-{tenant}"


def leaks(shown: Collection[Shown], tenants: Collection[str]) -> Iterator[str]:
    """Answers that tell a tenant of another, or everybody of any."""
    for answer in shown:
        for tenant in tenants:
            if tenant != answer.to and canary(tenant) in answer.text:
                at = answer.text.index(canary(tenant))
                near = answer.text[max(0, at - 60) : at + 60]
                yield f"{answer.surface} shows {answer.to or 'everybody'} something of {tenant}: …{near}…"


def silent(shown: Collection[Shown]) -> list[str]:
    """Where a tenant saw nothing of his own: a surface that shows nobody anything keeps no promise worth a test."""
    return [answer.surface for answer in shown if answer.to and canary(answer.to) not in answer.text]
