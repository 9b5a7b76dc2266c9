"""What happened while jobs were run: one entry for each attempt that ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, overload
from uuid import UUID

from rota._core.failure import Failure
from rota._core.job import Job, State
from rota._core.outcome import Transition
from rota.errors import RotaError


class JobFailed(RotaError):
    """A job failed where a test did not expect it, and its handler raised nothing that could be raised again."""


class Ran(NamedTuple):
    """One attempt and its end."""

    job: Job
    """The job as its worker got it."""
    to: State
    """What it became."""
    verb: str
    """How: complete, retry, die, snooze, cancel, hand back."""
    failure: Failure | None = None
    """Of a failed attempt: class, type, message and stack, as they are stored."""
    error: BaseException | None = None
    """What the handler raised, where it ran in this process."""
    result_json: str | None = None
    lost: bool = False
    """Its worker had disappeared."""

    @property
    def id(self) -> UUID:
        return self.job.id

    @property
    def task(self) -> str:
        return self.job.task

    @property
    def attempt(self) -> int:
        return self.job.attempt

    @property
    def ended(self) -> str:
        """How it ended, in one word: completed, retrying, dead, snoozed, cancelled, lost or handed back."""
        if self.lost:
            return "lost"
        if self.to is not State.PENDING:
            return self.to.value
        if self.failure is not None:
            return "retrying"
        return "snoozed" if self.verb == "snooze" else "handed back"

    @property
    def exception(self) -> BaseException:
        """What a test that expects success should see raised."""
        if self.error is not None:
            return self.error
        said = "it failed" if self.failure is None else f"{self.failure.error_class}: {self.failure.message}"
        return JobFailed(f"job {self.id} ({self.task}), attempt {self.attempt}: {said}")

    @classmethod
    def of(cls, transition: Transition, error: BaseException | None) -> Ran:
        return cls(
            transition.job,
            transition.to,
            transition.verb,
            transition.failure,
            error,
            transition.result_json,
            transition.lost,
        )

    def __str__(self) -> str:
        why = "" if self.failure is None else f" ({self.failure.type}: {self.failure.message})"
        return f"{self.task} {self.job.payload_json}: {self.ended}, attempt {self.attempt}{why}"


class Drained(Sequence[Ran]):
    """The attempts that a drain saw end, in that order. Jobs that were not due are not among them."""

    def __init__(self, runs: Iterable[Ran] = ()) -> None:
        self._runs = list(runs)

    @property
    def completed(self) -> list[Ran]:
        return self._by("completed", "partial")

    @property
    def retrying(self) -> list[Ran]:
        """Failed attempts that another one follows."""
        return self._by("retrying")

    @property
    def dead(self) -> list[Ran]:
        return [run for run in self._runs if run.to is State.DEAD]

    @property
    def failed(self) -> list[Ran]:
        """Failed attempts, whether another one follows or not; lost ones are not counted."""
        return [run for run in self._runs if run.failure is not None and not run.lost]

    @property
    def snoozed(self) -> list[Ran]:
        return self._by("snoozed")

    @property
    def cancelled(self) -> list[Ran]:
        return self._by("cancelled")

    @property
    def lost(self) -> list[Ran]:
        """Attempts whose worker disappeared, here by `crash_at()`."""
        return [run for run in self._runs if run.lost]

    def raise_failures(self) -> None:
        """Raise what the first failed handler raised; a note names the others."""
        failed = self.failed
        if not failed:
            return
        error = failed[0].exception
        error.add_note(f"rota: raised by {failed[0]}")
        for other in failed[1:]:
            error.add_note(f"rota: failed as well: {other}")
        raise error

    def _by(self, *ends: str) -> list[Ran]:
        return [run for run in self._runs if run.ended in ends]

    @overload
    def __getitem__(self, index: int) -> Ran: ...

    @overload
    def __getitem__(self, index: slice) -> list[Ran]: ...

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        counts = Counter(run.ended for run in self._runs)
        words = ", ".join(f"{number} {how}" for how, number in counts.items()) or "nothing was due"
        lines = [f"<Drained: {words}>", *(f"  {run}" for run in self._runs if run.failure is not None)]
        return "\n".join(lines)
