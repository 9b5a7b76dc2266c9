"""Which enqueued jobs a test means, and what to say when they are not there."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from rota._core.job import Job, State
from rota.errors import PayloadInvalid, TaskError, UnknownTask
from rota.task import Task

if TYPE_CHECKING:
    from rota.app import Rota

SHOWN = 20
_MISSING: Any = object()


class Wish(NamedTuple):
    """The jobs that are looked for. What is None does not matter."""

    task: Task[..., Any] | None = None
    args: Mapping[str, Any] = {}
    fields: Mapping[str, Any] = {}

    @classmethod
    def of(
        cls,
        app: Rota,
        task: Task[..., Any] | str | None,
        args: Mapping[str, Any] | None,
        fields: Mapping[str, Any],
    ) -> Wish:
        """Check the question itself: a slip in it must not look like an answer."""
        found = app.tasks.get(task) if isinstance(task, str) else task
        if found is None and task is not None:
            raise UnknownTask(str(task), app.tasks)
        if args and found is None:
            raise TypeError("args are the arguments of one task: name the task as well.")
        if found is not None:
            _check_names(found, args or {})
        return cls(found, args or {}, {name: value for name, value in fields.items() if value is not None})

    def fits(self, job: Job) -> bool:
        return not self.differences(job)

    def differences(self, job: Job) -> list[str]:
        """In which ways a job is another one than was looked for; none when it fits."""
        if self.task is not None and job.task != self.task.name:
            return [f"the task is {job.task}"]
        found = []
        for name, wanted in self.fields.items():
            actual = getattr(job, name)
            if not _same_field(wanted, actual):
                found.append(f"{name} is {_shown(actual)}, not {_shown(wanted)}")
        if self.args:
            assert self.task is not None
            plain, values = job.payload, called_with(self.task, job)
            for name, wanted in self.args.items():
                if not matches(wanted, values.get(name, _MISSING), plain.get(name, _MISSING)):
                    actual = plain.get(name, values.get(name))
                    found.append(f"{name} is {_shown(actual)}, not {_shown(wanted)}")
        return found

    def __str__(self) -> str:
        named = "any task" if self.task is None else self.task.name
        parts = [f"{name}={_shown(value)}" for name, value in self.args.items()]
        terms = [f"{name} {_shown(value)}" for name, value in self.fields.items()]
        return f"{named}({', '.join(parts)})" + (f" with {', '.join(terms)}" if terms else "")


def state_of(word: State | str) -> State:
    """The state of this name. What a job is called to people ("scheduled", "retrying") is no state."""
    try:
        return State(word)
    except ValueError:
        raise ValueError(
            f"there is no state {word!r}; choose one of {', '.join(State)}. A job that is due later is pending."
        ) from None


def called_with(task: Task[..., Any], job: Job) -> dict[str, Any]:
    """The arguments that the handler gets, defaults included; empty when the payload does not fit the task."""
    try:
        args, kwargs = task.arguments(job.payload_json)
        bound = inspect.signature(task.fn).bind(*args, **kwargs)
    except (PayloadInvalid, TypeError):
        return {}
    bound.apply_defaults()
    return dict(bound.arguments)


def matches(wanted: Any, value: Any, plain: Any) -> bool:
    """Whether an argument is as wanted: equal as the handler gets it, or as JSON; of a mapping, a part is enough."""
    if value is _MISSING and plain is _MISSING:
        return False
    if isinstance(wanted, Mapping) and isinstance(plain, Mapping):
        return all(name in plain and matches(part, _MISSING, plain[name]) for name, part in wanted.items())
    if value is not _MISSING and _equal(wanted, value):
        return True
    if plain is _MISSING:
        return False
    if isinstance(wanted, (list, tuple)) and isinstance(plain, list):
        pairs = zip(wanted, plain, strict=False)
        return len(wanted) == len(plain) and all(matches(one, _MISSING, other) for one, other in pairs)
    return _equal(wanted, plain) or _equal(_jsonable(wanted), plain)


def complaint(wish: Wish, wanted: str, jobs: Sequence[Job], now: datetime) -> str:
    """Say what was looked for, what is there, and how the nearest ones differ."""
    fitting = [job for job in jobs if wish.fits(job)]
    lines = [f"{wanted} of {wish}, but {_many(len(fitting))} enqueued."]
    if not jobs:
        return lines[0] + " Nothing was enqueued at all."
    alike = [job for job in jobs if wish.task is None or job.task == wish.task.name]
    others = [job for job in jobs if job not in alike]
    lines.append(f"What was enqueued ({len(jobs)} in all):")
    for job in [*alike, *others][:SHOWN]:
        differs = wish.differences(job) if job in alike else []
        why = f"   <- {'; '.join(differs)}" if differs else ""
        lines.append(f"  {line(job, now)}{why}")
    if len(jobs) > SHOWN:
        lines.append(f"  and {len(jobs) - SHOWN} more")
    return "\n".join(lines)


def line(job: Job, now: datetime) -> str:
    """A job in one line, as tests name it."""
    given = ", ".join(f"{name}={_shown(value)}" for name, value in job.payload.items())
    more = "" if job.key is None else f", key {job.key!r}"
    more += "" if job.tenant is None else f", tenant {job.tenant!r}"
    due = ""
    if job.state is State.PENDING and job.run_at > now:
        due = f" in {(job.run_at - now).total_seconds():g} s"
    return f"{job.task}({given}) in queue {job.queue!r}{more}: {job.label(now)}{due}"


def _check_names(task: Task[..., Any], args: Mapping[str, Any]) -> None:
    known: Collection[str] = inspect.signature(task.fn).parameters
    for name in args:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise TaskError(
                f"{task.name} has no parameter {name!r} to look for"
                + (f"; did you mean {near[0]!r}?" if near else f". It has {', '.join(known) or 'none'}.")
            )


def _same_field(wanted: Any, actual: Any) -> bool:
    if isinstance(actual, tuple):
        return set(wanted) <= set(actual)
    return bool(wanted == actual)


def _equal(one: Any, other: Any) -> bool:
    if callable(one) and not isinstance(one, type):
        predicate: Callable[[Any], Any] = one
        return bool(predicate(other))
    try:
        return bool(one == other)
    except Exception:  # a value that cannot be compared with this one is not it
        return False


def _jsonable(value: Any) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError):
        return _MISSING


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _many(number: int) -> str:
    return "none was" if number == 0 else "1 was" if number == 1 else f"{number} were"
