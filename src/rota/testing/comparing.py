"""Two runs side by side: what was done twice, and what was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Protocol

from rota._core.job import Job, State


class Ended(Protocol):
    """What a run left behind."""

    @property
    def job(self) -> Job: ...
    @property
    def effects(self) -> Any: ...
    @property
    def enqueued(self) -> Counter[str]: ...


class Difference(NamedTuple):
    """One thing that differs from the run without a crash."""

    what: str
    value: str

    def __str__(self) -> str:
        return f"{self.what}: {self.value}"


def differences(calm: Ended, crashed: Ended, *, at_most_once: bool) -> list[Difference]:
    """How a run with a crash differs from one without. `at_most_once`: what is missing is meant to be."""
    found = [*_compared(calm.effects, crashed.effects), *_jobs(calm.enqueued, crashed.enqueued)]
    if at_most_once:
        return [difference for difference in found if not difference.what.startswith("lost")]
    state = crashed.job.state
    if state is not calm.job.state:
        why = crashed.job.error_message or crashed.job.reason or "no reason was given"
        found.append(Difference("ended otherwise", f"the job is {state}, not {calm.job.state}: {why}"))
        if state is State.DEAD and crashed.job.max_attempts == 1:
            found.append(Difference("because", "it has one attempt only, and the crash took it"))
    return found


def _compared(calm: Any, crashed: Any) -> list[Difference]:
    if calm == crashed:
        return []
    one, other = _parts(calm), _parts(crashed)
    if one is None or other is None or one == other:
        return [Difference("other effects", f"{crashed!r:.300}, not {calm!r:.300}")]
    twice = [
        Difference("done twice" if part in one else "done besides", _counted(part, number))
        for part, number in (other - one).items()
    ]
    return twice + [Difference("lost", _counted(part, number)) for part, number in (one - other).items()]


def _jobs(calm: Counter[str], crashed: Counter[str]) -> list[Difference]:
    twice = [
        Difference("enqueued twice" if job in calm else "enqueued besides", _counted(job, number))
        for job, number in (crashed - calm).items()
    ]
    return twice + [
        Difference("lost job", f"{_counted(job, number)}") for job, number in (calm - crashed).items()
    ]


def _parts(value: Any) -> Counter[str] | None:
    """A collection as its parts, told apart by how they read; None for what has no parts."""
    if isinstance(value, Mapping):
        return Counter(f"{name!r}: {part!r}" for name, part in value.items())
    if isinstance(value, (list, tuple, AbstractSet)):
        return Counter(repr(part) for part in value)
    return None


def _counted(part: str, number: int) -> str:
    return part if number == 1 else f"{part} ({number} times)"
