"""Schedules as the code declares them: a task, its arguments, and when it runs by itself."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import timedelta
from typing import Any, Literal, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast, overload

from rota import options
from rota._core.durations import Duration, seconds
from rota._core.schedule import CAP, GRACE, Misfire, Overlap, ScheduleSpec, template_of
from rota.enqueueing import Using
from rota.errors import PayloadInvalid, ScheduleError
from rota.schedule_times import EVERY, IntervalTimes, times_of, windows_of, zone_of
from rota.task import AsyncTask, SyncTask, Task

P = ParamSpec("P")
R = TypeVar("R")

LARGEST_CAP = 1000
LONGEST_JITTER = 86_400.0
LONGEST_GRACE = 7 * 86_400.0
REFUSED = {
    "tx": "A tick is not part of your transaction: leave tx= out.",
    "key": "Each tick is one job already: leave key= out, or use unique=.",
    "run_at": "The schedule says when: leave at= and delay= out, and use jitter= to spread ticks.",
    "parent_id": "A tick has no parent: leave parent= out.",
}


class Every(NamedTuple):
    """A fixed distance between ticks; made by `every()`."""

    timing: str


When: TypeAlias = "str | Every"


def every(interval: Duration) -> Every:
    """Tick at a fixed distance: `every("5m")`, `every(90)`, `every(timedelta(hours=6))`; at least a second.

    Ticks are counted from 1970 in UTC, so `every("1h")` ticks on the hour,
    wherever and whenever workers start, and clock changes do not move it.
    """
    text = interval.strip() if isinstance(interval, str) else f"{_length(interval):g}s"
    timing = f"{EVERY}{text}"
    times_of(timing, "UTC")
    return Every(timing)


def _length(interval: float | timedelta) -> float:
    try:
        return seconds(interval, "every(…)")
    except ValueError as error:
        raise ScheduleError(str(error)) from None


class Schedule:
    """One declared schedule. Workers make it known in the store when they start, and tick it."""

    def __init__(
        self, name: str, task: Task[..., Any], said: dict[str, Any], given: ScheduleSpec, place: str
    ) -> None:
        self.name, self.task, self.place = name, task, place
        self._said, self._given = said, given
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}

    def calling(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Schedule:
        """Check that the task can be called so, as far as its signature says, and keep the arguments."""
        try:
            inspect.signature(self.task.fn).bind(*args, **kwargs)
        except TypeError as error:
            raise ScheduleError(
                f"schedule {self.name!r} cannot call {self.task.name}: {error}. "
                f"Give its arguments with the task: app.schedule(...)({self.task.name}, ...)."
            ) from None
        self._args, self._kwargs = args, kwargs
        return self

    def spec(self, maintenance: Sequence[str] = ()) -> ScheduleSpec:
        """The schedule as data, for the store; `maintenance` are windows that hold for all schedules."""
        try:
            windows_of(tuple(maintenance), self._given.tz)
        except ScheduleError as error:
            raise ScheduleError(f"the setting maintenance cannot be used: {error}") from None
        try:
            job = self.task.prepare(self._args, self._kwargs, self._said, by_schedule=True)
        except PayloadInvalid as error:
            raise PayloadInvalid(f"schedule {self.name!r} at {self.place} cannot tick: {error}") from error
        windows = (*self._given.windows, *(text for text in maintenance if text not in self._given.windows))
        return self._given._replace(template_json=template_of(job), windows=windows)

    def __repr__(self) -> str:
        return f"<Schedule {self.name}: {self._given.timing} ({self._given.tz}) calls {self.task.name}>"


class Scheduling:
    """What `app.schedule(...)` answers: call it with a task and its arguments, or put it over a task as a decorator."""

    def __init__(
        self,
        register: Callable[[Callable[..., Any]], Task[..., Any]],
        add: Callable[[Schedule], None],
        given: ScheduleSpec,
        place: str,
    ) -> None:
        self._register, self._add, self._given, self._place = register, add, given, place

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, task: AsyncTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncTask[P, R]: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, task: SyncTask[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> SyncTask[P, R]: ...

    @overload
    def __call__(self, task: Using[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Using[P, R]: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, task: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncTask[P, R]: ...

    @overload
    def __call__(self, task: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> SyncTask[P, R]: ...

    def __call__(self, task: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Schedule this task with these arguments; a plain function becomes a task first."""
        if isinstance(task, Using):
            found, said = cast("Task[..., Any]", task._task), dict(task._said)  # noqa: SLF001 - its other half
        elif isinstance(task, Task):
            found, said = task, {}
        elif callable(task):
            found = task = self._register(task)
            said = {}
        else:
            raise ScheduleError(
                f"app.schedule({self._given.timing!r}) needs a task, not {task!r}. Put it over @app.task, or call "
                "it with a task and its arguments: app.schedule(...)(task, ...)."
            )
        name = self._given.name or found.name
        for option, instead in REFUSED.items():
            if option in said:
                raise ScheduleError(f"schedule {name!r} cannot use that option. {instead}")
        given = self._given._replace(name=name, task=found.name)
        self._add(Schedule(name, found, said, given, self._place).calling(args, kwargs))
        return task


def declared(
    when: When,
    *,
    name: str | None = None,
    tz: str = "UTC",
    jitter: Duration = 0,
    overlap: Literal["skip", "allow"] | Overlap | None = None,
    misfire: Literal["skip", "last", "all"] | Misfire = Misfire.LAST,
    cap: int = CAP,
    grace: Duration = GRACE,
    windows: Iterable[str] = (),
) -> ScheduleSpec:
    """What was said of a schedule, checked; its task comes later."""
    if not isinstance(when, (str, Every)):
        raise ScheduleError(
            f'a schedule\'s time must be a cron expression such as "30 2 * * *" or every("5m"), not {when!r}.'
        )
    if not isinstance(tz, str):
        raise ScheduleError(f'tz must be the name of a time zone such as "Europe/Berlin", not {tz!r}.')
    if isinstance(windows, str):
        raise ScheduleError(f"windows must be a list of texts, not {windows!r}. Write [{windows!r}] for one.")
    closed = tuple(windows) if isinstance(windows, Iterable) else (windows,)
    if not all(isinstance(text, str) for text in closed):
        raise ScheduleError(f'windows must be a list of texts such as "0 1 * * SUN for 2h", not {windows!r}.')
    try:
        called = "" if name is None else options.name("a schedule's name", name)
        spread, late = seconds(jitter, "jitter"), seconds(grace, "grace")
    except (ValueError, TypeError) as error:
        raise ScheduleError(str(error)) from None
    missed = one_of("misfire", Misfire, misfire)
    lapping = one_of("overlap", Overlap, overlap or ("allow" if missed is Misfire.ALL else "skip"))
    timing = when.timing if isinstance(when, Every) else " ".join(when.split())
    return checked(ScheduleSpec(called, "", "{}", timing, tz, spread, lapping, missed, cap, late, closed))


V = TypeVar("V", Misfire, Overlap)


def one_of(what: str, kind: type[V], value: object) -> V:
    try:
        return kind(str(value))
    except ValueError:
        raise ScheduleError(f"{what}={value!r} is not known; choose one of {', '.join(kind)}.") from None


def checked(spec: ScheduleSpec) -> ScheduleSpec:
    """Refuse what cannot tick as it is said: by the code, or by code and operators together."""
    for trouble in troubles(spec).values():
        raise ScheduleError(trouble)
    return spec


def troubles(spec: ScheduleSpec) -> dict[str, str]:
    """Why it cannot tick as it is said, by the name of the field that is to be put right; the first is told first."""
    try:
        zone_of(spec.tz)
    except ScheduleError as error:
        return {"tz": str(error)}  # without a zone no time can be read
    found: dict[str, str] = {}
    times = None
    try:
        times = times_of(spec.timing, spec.tz)
    except ScheduleError as error:
        found["timing"] = str(error)
    try:
        windows_of(spec.windows, spec.tz)
    except ScheduleError as error:
        found["windows"] = str(error)
    if isinstance(times, IntervalTimes) and spec.jitter > times.length:
        found["jitter"] = (
            f"jitter of {spec.jitter:g} s is longer than the time between two ticks ({spec.timing}). Make it shorter."
        )
    for what, length in (("jitter", spec.jitter), ("grace", spec.grace)):
        if not length >= 0:  # nor what is not a number
            found.setdefault(what, f"{what} of {length:g} s is no length of time. Give 0 or more.")
    if spec.jitter > LONGEST_JITTER:
        words = f"jitter of {spec.jitter:g} s is too long; at most a day. Choose another time instead."
        found.setdefault("jitter", words)
    if spec.grace > LONGEST_GRACE:
        words = f"grace of {spec.grace:g} s is too long; at most a week. Use misfire for longer outages."
        found.setdefault("grace", words)
    if isinstance(spec.cap, bool) or not isinstance(spec.cap, int) or not 1 <= spec.cap <= LARGEST_CAP:
        found["cap"] = f"cap {spec.cap!r} is not a whole number from 1 to {LARGEST_CAP}."
    if spec.misfire is Misfire.ALL and spec.overlap is Overlap.SKIP:
        found["misfire"] = (
            "misfire='all' makes several jobs at once, and overlap='skip' allows one. Use overlap='allow', "
            "or misfire='last'."
        )
    return found


def refuse_twin(first: Schedule, second: Schedule) -> None:
    """Two schedules must not share a name. The same place again is a reload, and a place without a file a notebook."""
    if first.place == second.place or not os.path.exists(first.place.rpartition(":")[0]):  # noqa: PTH110
        return
    raise ScheduleError(
        f"two schedules are named {second.name!r}: {first.place} and {second.place}. "
        f'A schedule is named after its task; give one of them another name with app.schedule(..., name="...").'
    )
