"""Retry: whether and when a failed attempt is tried again. Policies are values, so a store can keep them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from rota._core.failure import FINAL, ErrorClass

if TYPE_CHECKING:
    from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often, and after which pauses, a task's failed attempts are repeated.

    After failed attempt n the pause is `base * 2**(n-1)` seconds, spread by
    `jitter` and never above `cap`. The defaults are those of the DOC-20 rules:
    2, 4, 8, 16 s (20 % either way, at most 300 s), five attempts in all.
    """

    attempts: int = 5
    base: float = 2.0
    cap: float = 300.0
    jitter: float = 0.2
    rate_limited_base: float = 60.0
    rate_limited_counts: bool = True
    """Whether a rate-limited attempt uses one up."""
    lost: bool = True
    """False: never rerun after a crash, for work that must not happen twice."""
    max_losses: int = 3
    """A job whose process died so often, in the end with nothing else in it, is dead."""
    max_snoozes: int = 1000
    classes: Mapping[str | type[BaseException], ErrorClass | str] = field(default_factory=dict)
    """Exception type, or its name (`TimeoutError`, `httpx.ConnectError`), to its class."""

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(
                f"Retry(attempts={self.attempts}): a job needs at least one attempt; use 1 for no retry."
            )
        if self.attempts > 32_767:
            raise ValueError(f"Retry(attempts={self.attempts}): at most 32767.")
        if self.base < 0 or self.cap < 0 or self.rate_limited_base < 0:
            raise ValueError("Retry: base, cap and rate_limited_base are seconds and cannot be negative.")
        if self.max_losses < 1:
            raise ValueError(f"Retry(max_losses={self.max_losses}): give at least 1.")
        if not 0 <= self.jitter < 1:
            raise ValueError(
                f"Retry(jitter={self.jitter}): give a share from 0 to below 1, such as 0.2 for 20 %."
            )
        object.__setattr__(
            self, "classes", {_name(kind): _class(named) for kind, named in self.classes.items()}
        )

    @classmethod
    def doc20(cls, **changes: Any) -> Retry:
        """The DOC-20 profile: five attempts, 2 s doubling, 20 % jitter, 300 s cap, rate limits from 60 s."""
        return cls(**changes)

    @classmethod
    def lipas(cls, **changes: Any) -> Retry:
        """The LIPAS profile: three attempts, 1 s doubling, 10 % jitter, five minutes at most."""
        return cls(**{"attempts": 3, "base": 1.0, "jitter": 0.1, "cap": 300.0, **changes})

    @classmethod
    def never(cls) -> Retry:
        """One attempt, and dead if it fails or its worker disappears."""
        return cls(attempts=1, lost=False)

    def class_of(self, error: BaseException) -> ErrorClass:
        """Class an exception by this task's type map; the nearest type in its family decides."""
        for kind in type(error).__mro__:
            found = self.classes.get(kind.__qualname__) or self.classes.get(
                f"{kind.__module__}.{kind.__qualname__}"
            )
            if found is not None:
                return ErrorClass(found)
        return ErrorClass.RETRYABLE

    def allows(self, error_class: ErrorClass, attempt: int, max_attempts: int) -> bool:
        """Whether attempt number `attempt`, which failed so, may be followed by another."""
        if error_class in FINAL:
            return False
        if error_class in (ErrorClass.LOST, ErrorClass.CRASH) and not self.lost:
            return False
        if error_class is ErrorClass.RATE_LIMITED and not self.rate_limited_counts:
            return True
        return attempt < max_attempts

    def delay(
        self, error_class: ErrorClass, attempt: int, *, spread: float, retry_after: float | None = None
    ) -> float:
        """Seconds to wait after failed attempt `attempt`. `spread` runs from 0 to 1 and places it in the jitter."""
        if retry_after is not None:
            return max(0.0, retry_after)
        base = self.rate_limited_base if error_class is ErrorClass.RATE_LIMITED else self.base
        pause: float = min(self.cap, base * 2.0 ** min(max(attempt, 1) - 1, 60))
        return min(self.cap, pause * (1 - self.jitter + 2 * self.jitter * spread))

    def as_json(self) -> dict[str, Any]:
        """The policy as plain values, for the `tasks` table."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return plain | {"classes": {name: str(kind) for name, kind in self.classes.items()}}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Retry:
        """Read a stored policy; what it does not know is left out, so older code reads newer rows."""
        known = {f.name for f in fields(cls)}
        kept = {name: value for name, value in plain.items() if name in known}
        named = {kind.value for kind in ErrorClass}
        kept["classes"] = {name: kind for name, kind in kept.get("classes", {}).items() if kind in named}
        return cls(**kept)


def _name(kind: str | type[BaseException]) -> str:
    if isinstance(kind, str):
        return kind
    if isinstance(kind, type) and issubclass(kind, BaseException):
        return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    raise ValueError(f"Retry(classes=…): {kind!r} is no exception type and no name of one.")


def _class(named: ErrorClass | str) -> ErrorClass:
    try:
        return ErrorClass(named)
    except ValueError:
        known = ", ".join(kind.value for kind in ErrorClass)
        raise ValueError(f"Retry(classes=…): {named!r} is no error class. Use one of {known}.") from None


def spread_of(job_id: UUID, attempt: int) -> float:
    """A number from 0 to 1 that is the same for the same attempt everywhere: jitter without a dice."""
    digest = hashlib.blake2b(job_id.bytes + attempt.to_bytes(4, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
