"""Task: a function that can run later, somewhere else. `prepare()` turns a call into a job ready to be stored."""

from __future__ import annotations

import functools
import inspect
import json
import os
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, ParamSpec, TypeVar, cast
from uuid import UUID

from rota import options
from rota._core.durations import Duration, seconds
from rota._core.functions import checked_parameters, place_of
from rota._core.job import DEFAULT_PRIORITY, DEFAULT_QUEUE, Job, NewJob, Row
from rota._core.payload import PayloadWarning, plain, problem
from rota._core.priority import checked
from rota._core.process import Process, executor_of
from rota._core.redaction import redacted_text
from rota._core.retry import Retry
from rota._core.rules import KeyRule, TaskRules
from rota._core.task_spec import TaskSpec
from rota.current import NOTHING, inherited
from rota.enqueueing import Verbs
from rota.errors import PayloadInvalid, PayloadTooLarge, TaskError
from rota.handle import Home
from rota.new_ids import new_id
from rota.options import Rule, Unique

if TYPE_CHECKING:
    from rota.payload_guard import Guard
    from rota.shape import Arguments, Result

P = ParamSpec("P")
R = TypeVar("R")

_NOBODY = UUID(int=0)


class Task(Verbs[P, R]):
    """A registered function. Call it, and it runs here; enqueue it, and a worker runs it."""

    is_async: ClassVar[bool]

    def __init__(
        self,
        home: Home,
        fn: Callable[..., Any],
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = DEFAULT_PRIORITY,
        retry: Retry | int | None = None,
        timeout: Duration | None = None,
        key: Rule | None = None,
        unique: Rule | Unique | None = None,
        serial: Rule | None = None,
        payload_version: str = "1.0",
        category: str | None = None,
        tags: Iterable[str] = (),
        executor: Literal["aio", "thread", "process"] | Process | None = None,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(self, {})
        self.name = _task_name(fn, name)
        self.fn, self.home = fn, home
        self.place = place_of(fn)
        """Where it is defined: file and line."""
        self.queue = options.name("queue", queue)
        self.priority = checked(priority)
        self.retry = Retry(attempts=retry) if isinstance(retry, int) else retry or Retry()
        self.timeout = None if timeout is None else seconds(timeout, "timeout")
        self.payload_version = options.name("payload_version", payload_version)
        self.category = None if category is None else home.categories[category].name
        self.tags = options.tags(tags)
        self.executor, self.process = executor_of(self.name, fn, executor, is_async=self.is_async)
        self._names = names
        self._parameters = checked_parameters(self.name, fn)
        self._key_by, self._serial_by = key, serial
        self._unique = unique if isinstance(unique, Unique) or unique is None else Unique(unique)
        by = {"key": key, "unique": None if self._unique is None else self._unique.key, "serial": serial}
        self._rules = {
            option: self._checked_rule(option, rule) for option, rule in by.items() if rule is not None
        }
        self._warned = False
        functools.update_wrapper(cast("Any", self), fn)

    def __repr__(self) -> str:
        return f"<Task {self.name} at {self.place}>"

    # What an enqueue needs

    def prepare(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        said: Mapping[str, Any] | None = None,
        *,
        by_schedule: bool = False,
    ) -> NewJob:
        """Check a call and make the job that stands for it. Nothing is stored.

        `said` are the terms of `using()`. What surrounds the call (the running
        job, `context()`) is handed on.
        """
        said, shape = said or {}, self._shape
        tail, valid = self._tail(said), shape.checked(shape.bind(args, kwargs))
        job = NewJob(new_id(), self.name, self._storable(shape.written(valid)), *tail)
        return self._passed(job, valid, said, by_schedule=by_schedule) if self._looked_at else job

    def prepare_many(self, rows: Iterable[Any], said: Mapping[str, Any]) -> Iterator[NewJob]:
        """One job a row; a row is a tuple or a mapping of arguments, or the value for a task with one parameter."""
        tail, shape = self._tail(said), self._shape
        for number, row in enumerate(rows):
            try:
                valid = shape.checked(self._fields(row))
                job = NewJob(new_id(), self.name, self._storable(shape.written(valid)), *tail)
                yield self._passed(job, valid, said) if self._looked_at else job
            except PayloadInvalid as error:
                raise _of_row(number, error) from error

    def alike(self, said: Mapping[str, Any]) -> NewJob | None:
        """The job that all rows of a call are like, but for id and payload; None where each needs a look of its own."""
        like = NewJob(_NOBODY, self.name, "", *self._tail(said))
        return None if self._looked_at or like.keyed else like

    def rows_alike(self, rows: Iterable[Any]) -> Iterator[Row]:
        """The id and the payload for each row, of jobs that are alike: a third of the price of whole jobs."""
        fields, checked, written, storable = (
            self._fields, self._shape.checked, self._shape.written, self._storable,
        )  # fmt: skip
        for number, row in enumerate(rows):
            try:
                yield new_id(), storable(written(checked(fields(row))))
            except PayloadInvalid as error:
                raise _of_row(number, error) from error

    @functools.cached_property
    def _guard(self) -> Guard | None:
        from rota.payload_guard import guard_of

        return guard_of(self.name, self.home.rules, self.home.categories, self._shape.names)

    @functools.cached_property
    def _looked_at(self) -> bool:
        """Whether a job needs more than its arguments: keys from the decorator, or a look by the app's rules."""
        return bool(self._rules) or self._guard is not None

    def _passed(
        self, job: NewJob, valid: dict[str, Any], said: Mapping[str, Any], *, by_schedule: bool = False
    ) -> NewJob:
        ruled = self._ruled(job, valid, said) if self._rules else job
        return ruled if self._guard is None else self._guard.passed(ruled, by_schedule=by_schedule)

    def _fields(self, row: Any) -> Mapping[str, Any]:
        shape = self._shape
        if isinstance(row, tuple):
            return {shape.alone: row[0]} if shape.alone is not None and len(row) == 1 else shape.bind(row, {})
        if shape.only is not None:
            by_name = isinstance(row, Mapping) and row.keys() == {shape.only}
            return row if by_name else {shape.only: row}
        if isinstance(row, Mapping):
            return row
        if isinstance(row, Sequence) and not isinstance(row, (str, bytes)):
            return shape.bind(tuple(row), {})
        raise PayloadInvalid(
            f"{self.name} takes {len(self._parameters)} arguments and got the single value "
            f"{redacted_text(repr(row)):.60}. Give a tuple or a mapping of arguments."
        )

    def _tail(self, said: Mapping[str, Any]) -> tuple[Any, ...]:
        """Everything of a new job that is the same for each call: its fields after id, task and payload."""
        around = inherited()
        if not said and around is NOTHING:
            return self._plain_tail
        values = {
            "queue": self.queue,
            "priority": self.priority,
            "max_attempts": self.retry.attempts,
            "timeout": self.timeout,
            "tags": self.tags,
            "category": self.category,
            "payload_version": self.payload_version,
            "correlation_id": around.correlation_id or None,
            "tenant": around.tenant or None,
            "created_by": around.created_by or None,
            "parent_id": around.parent_id,
            **said,
        }
        values.pop("tx", None)
        if "category" in said:
            values["category"] = self.home.categories[said["category"]].name
        serial = values.pop("serial", None)
        if serial is not None:
            values["gate"] = _gate(values["tenant"], serial)
        return NewJob(_NOBODY, self.name, **values)[3:]

    @functools.cached_property
    def _plain_tail(self) -> tuple[Any, ...]:
        return self._tail({"tx": None})

    def _ruled(self, job: NewJob, valid: dict[str, Any], said: Mapping[str, Any]) -> NewJob:
        """Lay what the decorator says of keys over a job, where `using()` says nothing."""
        changes: dict[str, Any] = {}
        for option, rule in self._rules.items():
            if ("unique_key" if option == "unique" else option) in said:
                continue
            found = rule(valid)
            if found is None:
                continue
            found = options.name(f"{option} of {self.name}", found)
            if option == "key":
                changes["key"] = found
            elif option == "serial":
                changes["gate"] = _gate(job.tenant, found)
            else:
                assert self._unique is not None
                changes |= self._unique.terms(found)
        return job._replace(**changes) if changes else job

    def _checked_rule(self, option: str, rule: Rule) -> Callable[[dict[str, Any]], str | None]:
        if callable(rule):
            return functools.partial(self._by_function, rule)
        if rule not in self._parameters:
            raise TaskError(
                f"task {self.name!r}: {option}={rule!r} is not one of its parameters ({', '.join(self._parameters)}). "
                f"Name one of them, or give a function of its arguments, such as {option}=lambda ...: {rule!r}."
            )
        return functools.partial(self._by_parameter, rule)

    def _by_function(self, rule: Callable[..., str | None], valid: dict[str, Any]) -> str | None:
        args, kwargs = self._shape.called(valid)
        return rule(*args, **kwargs)

    def _by_parameter(self, parameter: str, valid: dict[str, Any]) -> str | None:
        """The text of an argument, as `payload ->> parameter` gives it in SQL."""
        value = valid.get(parameter, self._parameters[parameter].default)
        if value is None or isinstance(value, str):
            return value
        plain = json.loads(self._shape.written({parameter: value}))[parameter]
        return plain if isinstance(plain, str) else json.dumps(plain)

    def _storable(self, raw: bytes) -> str:
        text = raw.decode()
        if plain(text):
            return text
        settings = self._limits
        trouble = problem(text, limit=settings[1])
        if trouble is not None:
            kind = PayloadTooLarge if len(raw) > settings[1] else PayloadInvalid
            raise kind(f"{self.name} cannot be enqueued: {trouble}.")
        if len(raw) > settings[0] and not self._warned:
            self._warned = True
            warnings.warn(
                f"the arguments of {self.name} are {len(raw):,} bytes of JSON; above {settings[0]:,} queues get slow. "
                "Store the content elsewhere and pass a reference to it.",
                PayloadWarning,
                stacklevel=2,
            )
        return text

    @functools.cached_property
    def _limits(self) -> tuple[int, int, int]:
        settings = self.home.settings
        return settings.payload_warn, settings.payload_limit, settings.result_limit

    # What a worker needs

    def arguments(self, payload_json: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Read and check a stored payload straight into call arguments; PayloadInvalid if it does not fit."""
        return self._shape.read(payload_json)

    def dump_result(self, value: Any) -> str | None:
        """What the function returned, as JSON text; PayloadInvalid if it cannot be stored."""
        if value is None:
            return None
        raw = self._result.written(value)
        text = raw.decode()
        trouble = problem(text, limit=self._limits[2])
        if trouble is not None:
            kind = PayloadTooLarge if len(raw) > self._limits[2] else PayloadInvalid
            raise kind(f"the result of {self.name} cannot be stored: {trouble}.")
        return text

    def read_result(self, job: Job) -> Any:
        """The stored result of a job of this task, as its return type."""
        return None if job.result_json is None else self._result.read(job.result_json)

    def spec(self) -> TaskSpec:
        """The task as data, for the registry in the store."""
        return TaskSpec(
            name=self.name,
            queue=self.queue,
            priority=self.priority,
            retry=self.retry,
            timeout=self.timeout,
            payload_version=self.payload_version,
            schema_json=json.dumps(self._shape.schema()),
            gate_path=self._serial_by if isinstance(self._serial_by, str) else None,
            category=self.category,
            rules=self._rules_as_data(),
        )

    def _rules_as_data(self) -> TaskRules:
        """The decorator's words on keys and tags, for those who enqueue without this code."""
        unique = None if self._unique is None else self._unique.key
        by = {"key": self._key_by, "unique": unique, "serial": self._serial_by}
        found: dict[str, Any] = {
            option: self._rule_as_data(rule) for option, rule in by.items() if rule is not None
        }
        if self._unique is not None:
            found |= {
                name: value for name, value in self._unique.terms("any").items() if name != "unique_key"
            }
        category = None if self.category is None else self.home.categories[self.category]
        return TaskRules(**found, tags=self.tags, policy=self.home.rules.policy(category).or_none)

    def _rule_as_data(self, rule: Rule) -> KeyRule:
        if not isinstance(rule, str):
            return KeyRule(None)
        required = self._parameters[rule].default is inspect.Parameter.empty
        return KeyRule(rule, None if required else self._by_parameter(rule, {}))

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        from rota.shape import hints_of

        hints = hints_of(self.name, self.fn, self._names)
        self._names = None  # the names around the definition have served, and may hold much
        return hints

    @functools.cached_property
    def _shape(self) -> Arguments:
        from rota.shape import Arguments

        return Arguments(self.name, self.fn, self._hints)

    @functools.cached_property
    def _result(self) -> Result:
        from rota.shape import Result

        return Result(self.name, self._hints.get("return", Any))


class AsyncTask(Task[P, R]):
    """A task whose function is async."""

    is_async = True

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        coroutine: Coroutine[Any, Any, R] = self.fn(*args, **kwargs)
        return coroutine


class SyncTask(Task[P, R]):
    """A task whose function is not async; workers run it in a thread."""

    is_async = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        value: R = self.fn(*args, **kwargs)
        return value


def refuse_twin(first: Task[..., Any], second: Task[..., Any]) -> None:
    """Two tasks must not share a name. The same place again is a reload, and a place without a file is a notebook."""
    if first.place == second.place or not os.path.exists(first.place.rpartition(":")[0]):  # noqa: PTH110
        return
    raise TaskError(
        f"two tasks are named {second.name!r}: {first.place} and {second.place}. "
        f'Give one of them another name with @app.task(name="...").'
    )


def _of_row(number: int, error: PayloadInvalid) -> PayloadInvalid:
    of_row = type(error)(f"row {number}: {error} Nothing was stored.")
    of_row.__dict__.update(error.__dict__)
    return of_row


def _gate(tenant: str | None, serial: str) -> str:
    return f"serial:{tenant or ''}:{serial}"


def _task_name(fn: Callable[..., Any], name: str | None) -> str:
    if not callable(fn):
        raise TaskError(
            f"@app.task needs a function, not {fn!r}. Options are given by name: @app.task(queue=...)."
        )
    if inspect.isasyncgenfunction(fn) or inspect.isgeneratorfunction(fn):
        raise TaskError(
            f"{fn.__qualname__} yields; a task returns. Collect what it yields, or enqueue a job for each."
        )
    found: str | None = name or getattr(fn, "__name__", None)
    if not found or found == "<lambda>":
        raise TaskError(f'{fn!r} has no name of its own. Give it one with @app.task(name="...").')
    return options.name("a task's name", found)
