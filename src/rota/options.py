"""What may be said of one job besides its arguments: the options of `using()`, checked and in the store's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Literal, Protocol, TypeAlias, TypedDict
from uuid import UUID

from rota._core.durations import Duration, seconds
from rota._core.ids import parse_id
from rota._core.job import OnDuplicate, Scope
from rota._core.priority import checked
from rota._core.rules import TEXT_LIMIT
from rota.errors import TaskError

ATTEMPTS_LIMIT = 32_767

Rule: TypeAlias = "str | Callable[..., str | None]"
"""How a decorator finds a key: the name of a parameter, or a function of the task's arguments."""


class HasId(Protocol):
    """A handle, a running job, a job."""

    @property
    def id(self) -> UUID: ...


@dataclass(frozen=True, slots=True)
class Unique:
    """At most one waiting job for `key` of this task and tenant.

    `until` says how long it keeps others out: until its job has "started", until
    it has "finished", or for a duration such as "5m". `on_duplicate` says what a
    second enqueue does to the waiting job.
    """

    key: Rule
    until: Literal["started", "finished"] | Duration = "started"
    on_duplicate: Literal["keep", "replace", "reschedule", "merge", "reject"] | OnDuplicate = "keep"

    def __post_init__(self) -> None:
        if self.on_duplicate not in list(OnDuplicate):
            allowed = ", ".join(OnDuplicate)
            raise ValueError(f"Unique(on_duplicate={self.on_duplicate!r}): choose one of {allowed}.")
        if self.until not in (Scope.STARTED, Scope.FINISHED):
            window = seconds(self.until, 'Unique(until=…), where not "started" or "finished",')
            if window <= 0:
                raise ValueError(f"Unique(until={self.until!r}): a window must be longer than nothing.")

    def terms(self, key: str) -> dict[str, Any]:
        """In the words of a new job."""
        window = None if self.until in (Scope.STARTED, Scope.FINISHED) else seconds(self.until)
        return {
            "unique_key": text("unique", key),
            "unique_scope": Scope.WINDOW if window is not None else Scope(str(self.until)),
            "unique_window": window,
            "on_duplicate": OnDuplicate(self.on_duplicate),
        }


class Options(TypedDict, total=False):
    """The options of one job. What is not given comes from the decorator, then from the job or `context()` around."""

    queue: str
    priority: int
    """0 (first) to 32767 (last); 100 is normal."""
    delay: Duration
    at: datetime
    """When it becomes due, with a time zone; instead of `delay`."""
    tenant: str
    """An empty text takes an inherited tenant away; so for `correlation_id`, `created_by` and `parent`."""
    subject: str
    """What the job is about (`site:12`); jobs are found by it."""
    key: str
    """Idempotency: a second enqueue with this key and tenant is the first job, even when that has ended."""
    key_window: Duration
    """How long `key` is remembered; a day unless told."""
    unique: str | Unique
    serial: str
    """Jobs with the same text run one at a time."""
    correlation_id: str
    parent: HasId | UUID | str
    tags: Iterable[str]
    created_by: str
    category: str
    deadline: Duration
    """Counted from now; a job that could not start until then dies instead."""
    timeout: Duration
    """How long one attempt may run."""
    max_attempts: int
    external_id: str
    tx: Any
    """Your own open database connection or session: the job is stored when you commit."""


def text(option: str, value: object) -> str:
    """A short text that every store can keep in an index."""
    if not isinstance(value, str):
        raise TypeError(f"{option} must be a text, not {value!r}. Write str(...) around it.")
    if "\x00" in value:
        raise ValueError(
            f"{option} {value!r} contains a NUL character, which PostgreSQL cannot store. Remove it."
        )
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{option} {value!a} contains a lone surrogate, which is not text.") from None
    if size > TEXT_LIMIT:
        raise ValueError(
            f"{option} has {size} bytes; at most {TEXT_LIMIT} are allowed. Use a hash or an id of it."
        )
    return value


def name(option: str, value: object) -> str:
    if not text(option, value):
        raise ValueError(f"{option} must not be empty.")
    return str(value)


def terms(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in the words of a new job. Only what was said is answered."""
    if "delay" in options and "at" in options:
        raise ValueError("delay and at were both given; a job becomes due once. Give one of them.")
    said: dict[str, Any] = {}
    for option, value in options.items():
        read = _READERS.get(option)
        if read is None:
            close = get_close_matches(option, _READERS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f". Known are: {', '.join(_READERS)}."
            raise TaskError(f"using() has no option {option!r}{hint}")
        if value is not None:
            said.update(read(value))
    return said


def attempts(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= ATTEMPTS_LIMIT:
        raise ValueError(f"max_attempts {value!r} is not a whole number from 1 to {ATTEMPTS_LIMIT}.")
    return value


def tags(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"tags must be a list of texts, not {value!r}. Write [{value!r}] for one tag.")
    return tuple(name("a tag", tag) for tag in value)


def _at(value: object) -> dict[str, Any]:
    if not isinstance(value, datetime):
        raise TypeError(f"at must be a datetime, not {value!r}; use delay for a duration.")
    return {"run_at": moment("at", value), "delay": 0.0}


def moment(option: str, value: datetime) -> datetime:
    """A moment that every store can keep and give back in any time zone."""
    if value.tzinfo is None:
        raise ValueError(
            f"{option} {value.isoformat()} has no time zone. Use datetime.now(UTC) or datetime(..., tzinfo=...)."
        )
    if not 1 < value.year < 9999:
        raise ValueError(f"{option} {value.isoformat()} is not a time that calendars have everywhere.")
    return value


def _parent(value: object) -> dict[str, Any]:
    if isinstance(value, UUID):
        return {"parent_id": value}
    if isinstance(value, str):
        return {"parent_id": parse_id(value) if value else None}
    if isinstance(parent_id := getattr(value, "id", None), UUID):
        return {"parent_id": parent_id}
    raise TypeError(f"parent must be a job id, a handle or a job, not {value!r}.")


def _unique(value: object) -> dict[str, Any]:
    wanted = value if isinstance(value, Unique) else Unique(name("unique", value))
    if not isinstance(wanted.key, str):
        raise TypeError(
            f"using(unique=…) needs the key itself as a text, not {wanted.key!r}; functions belong in @app.task."
        )
    return wanted.terms(name("unique", wanted.key))


def _text(option: str, field: str | None = None) -> Callable[[object], dict[str, Any]]:
    return lambda value: {field or option: text(option, value) or None}


def _name(option: str, field: str | None = None) -> Callable[[object], dict[str, Any]]:
    return lambda value: {field or option: name(option, value)}


def _time(option: str, field: str | None = None) -> Callable[[Any], dict[str, Any]]:
    return lambda value: {field or option: seconds(value, option)}


_READERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "queue": _name("queue"),
    "priority": lambda value: {"priority": checked(value)},
    "delay": lambda value: {"delay": seconds(value, "delay"), "run_at": None},
    "at": _at,
    "tenant": _text("tenant"),
    "subject": _name("subject"),
    "key": _name("key"),
    "key_window": _time("key_window"),
    "unique": _unique,
    "serial": _name("serial"),
    "correlation_id": _text("correlation_id"),
    "parent": _parent,
    "tags": lambda value: {"tags": tags(value)},
    "created_by": _text("created_by"),
    "category": _name("category"),
    "deadline": _time("deadline", "deadline_in"),
    "timeout": _time("timeout"),
    "max_attempts": lambda value: {"max_attempts": attempts(value)},
    "external_id": _name("external_id"),
    "tx": lambda value: {"tx": value},
}
