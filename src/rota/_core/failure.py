"""How an attempt failed, in words that a store can keep and a policy can read."""

from __future__ import annotations

import traceback
from enum import StrEnum
from typing import NamedTuple

from rota._core.redaction import redacted_text

MESSAGE_LIMIT = 2047
STACK_LIMIT = 16_384
CUT = " …[cut]"


class ErrorClass(StrEnum):
    """What kind of failure it was; docs/retries.md has the table of consequences."""

    TRANSIENT = "transient"
    RETRYABLE = "retryable"  # the default for an exception that nobody classed
    RATE_LIMITED = "rate_limited"
    NON_RETRYABLE = "non_retryable"
    PAYLOAD_INVALID = "payload_invalid"
    UNKNOWN_TASK = "unknown_task"
    TIMEOUT = "timeout"
    LOST = "lost"  # the worker disappeared with the job
    CRASH = "crash"  # the process that ran the job died
    DEADLINE = "deadline"  # the job's deadline passed before it could start
    NOT_READY = "not_ready"  # the handler asked to be run later, too often
    CANCELLED = "cancelled"
    OPERATOR = "operator"  # a person failed or killed it


FINAL = frozenset(
    {
        ErrorClass.NON_RETRYABLE,
        ErrorClass.PAYLOAD_INVALID,
        ErrorClass.UNKNOWN_TASK,
        ErrorClass.DEADLINE,
        ErrorClass.NOT_READY,
    }
)


class Failure(NamedTuple):
    """One failed attempt's why. Texts are bounded, so that no handler can fill the store with one."""

    error_class: ErrorClass
    type: str
    message: str
    stack: str | None = None
    retry_after: float | None = None

    @classmethod
    def of(
        cls, error: BaseException, error_class: ErrorClass, *, retry_after: float | None = None
    ) -> Failure:
        """Record an exception: message and stack as text, without local variables."""
        stack = "".join(traceback.format_exception(error))
        return cls(
            error_class,
            f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins."),
            clip(storable(redacted_text(str(error)[: 2 * MESSAGE_LIMIT])), MESSAGE_LIMIT),
            clip_head(storable(redacted_text(stack[-2 * STACK_LIMIT :])), STACK_LIMIT),
            retry_after,
        )

    @classmethod
    def because(cls, error_class: ErrorClass, message: str) -> Failure:
        """Record a failure that no exception stands for."""
        said = storable(redacted_text(message[: 2 * MESSAGE_LIMIT]))
        return cls(error_class, error_class.value, clip(said, MESSAGE_LIMIT))


def clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - len(CUT)] + CUT


def clip_head(text: str, limit: int) -> str:
    """Keep the end: in a stack the last frames tell most."""
    return text if len(text) <= limit else CUT.strip() + " " + text[-(limit - len(CUT)) :]


def storable(text: str) -> str:
    """Make any text fit for storage: NUL and lone surrogates become visible marks."""
    if "\x00" in text:
        text = text.replace("\x00", "␀")
    return text.encode("utf-8", "replace").decode("utf-8")
