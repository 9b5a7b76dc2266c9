"""assert_survives_crashes: a task is run again and again, and each time its worker dies at another point."""

from __future__ import annotations

import gc
import inspect
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from rota._core.durations import Duration
from rota._core.job import Job, NewJob, State
from rota.errors import RotaError, TaskError
from rota.portal import run
from rota.stores.opening import empty_database, open_store
from rota.testing.clock import StandingClock
from rota.testing.comparing import Difference, differences
from rota.testing.crash import Point
from rota.testing.kit import LIMIT, PATIENCE, Kit
from rota.testing.modes import stands_in
from rota.testing.patching import around, drivers, name_of
from rota.testing.real_kit import for_tests, prepare
from rota.testing.running import Shift, waiting
from rota.testing.tracing import Scope

if TYPE_CHECKING:
    from rota.stores.contract import Store
    from rota.task import Task

MOST_POINTS = 200
SHOWN = 10
_UNKNOWN: Any = object()


class Recorder:
    """A trap that never closes: it notes where a crash could happen."""

    def __init__(self, job: NewJob) -> None:
        self._job = job
        self.points: list[Point] = []

    def about(self, job: Job) -> bool:
        return job.id == self._job.id

    def reach(self, point: Point) -> bool:
        self.points.append(point)
        return False


class CrashOn(Recorder):
    """Closes at the point with this number."""

    def __init__(self, job: NewJob, number: int) -> None:
        super().__init__(job)
        self._number = number
        self.point: Point | None = None
        """Where it crashed."""

    def reach(self, point: Point) -> bool:
        super().reach(point)
        if self.point is None and len(self.points) - 1 == self._number:
            self.point = point
            return True
        return False


class Ended(NamedTuple):
    """What a run left behind."""

    job: Job
    effects: Any
    enqueued: Counter[str]
    """Other jobs that it enqueued: task, arguments, queue and tenant."""


class Finding(NamedTuple):
    """A crash that changed what was done."""

    point: Point
    visit: int
    """How often the run had come by there, this time included."""
    differences: Sequence[Difference]


@dataclass(frozen=True)
class Survival:
    """What the crashes showed."""

    task: str
    points: Sequence[Point]
    """Where the task can be interrupted, in the order of a run without a crash."""
    tried: Sequence[Point]
    findings: Sequence[Finding] = field(default=())

    def __str__(self) -> str:
        left = len(self.points) - len(self.tried)
        tried = f"{len(self.tried)} crash points" + (f" ({left} more were left out)" if left else "")
        if not self.findings:
            return f"{self.task} survives a crash at each of {tried}."
        lines = [f"{self.task} does not survive a crash at {len(self.findings)} of {tried}:"]
        for finding in self.findings[:SHOWN]:
            again = f" (time {finding.visit})" if finding.visit > 1 else ""
            lines.append(f"  crash {finding.point}{again}")
            lines += [f"      {difference}" for difference in finding.differences]
        if len(self.findings) > SHOWN:
            lines.append(f"  and {len(self.findings) - SHOWN} more")
        lines.append(
            "A job is run again after a crash, from its first line. Give outside systems "
            "current_job().effect_key, so that they know a repeat; write your rows and the mark that they are "
            "written in one transaction; look what is done before doing it. docs/testing.md has examples."
        )
        return "\n".join(lines)


async def assert_survives_crashes(
    task: Task[..., Any],
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    effects: Callable[[], Any],
    reset: Callable[[], Any] | None = None,
    at: Iterable[str | Callable[..., Any]] = (),
    within: Iterable[object] = (),
    url: str | None = None,
    most: int = MOST_POINTS,
    timeout: Duration = PATIENCE,  # noqa: ASYNC109 - it bounds each run, and says what still ran
) -> Survival:
    """Fail unless the task does the same, once, wherever its worker dies.

    The task is run without a crash first, then once for each point at which a
    crash could hit it: before each line of its function, before and after each
    commit (psycopg, asyncpg, SQLAlchemy and Django on them), each enqueue and
    each call of what `at` names, after it has ended, and after that was written
    down. Each time a second worker rescues the job and runs it to its end by
    the rules of its `Retry`, and what `effects()` tells then is compared with
    what it told after the run without a crash. Jobs that the task enqueues are
    compared as well, and are run.

    `effects` answers with what was done, as something that can be compared: a
    list of sent mails, the rows of a table. `reset` makes it as if nothing had
    been done. Both may be async. `within` names functions, classes, modules or
    packages whose lines count besides the task's own; whatever else is called
    happens as a whole. At `most` so many points are tried.

    Jobs are kept in memory, or in the PostgreSQL at `url`, where Rota's tables
    are emptied before each run: for tasks that enqueue with `tx=`.
    """
    if most < 1:
        raise ValueError(f"most is {most}; try at least 1 crash point.")
    trial = _Trial(
        task,
        task.prepare(args, kwargs or {}),
        effects=effects,
        reset=reset,
        at=tuple(at),
        within=within,
        url=url,
        patience=timeout,
    )
    gc.collect()
    gc.freeze()  # what is there by now need not be looked through after each crash
    try:
        survival = await _survival(trial, task, most)
    finally:
        gc.unfreeze()
    if survival.findings:
        raise AssertionError(str(survival))
    return survival


async def _survival(trial: _Trial, task: Task[..., Any], most: int) -> Survival:
    calm, points = await trial.calm()
    tried: list[Point] = []
    findings = []
    for number in _chosen(points, most):
        trap = CrashOn(trial.new, number)
        ended = await trial.run(trap)
        if trap.point is None:
            continue  # it took another way this time, and never came by: nothing was tried
        tried.append(trap.point)
        found = differences(calm, ended, at_most_once=not task.retry.lost)
        if found:
            findings.append(Finding(trap.point, trap.points[: number + 1].count(trap.point), found))
    return Survival(task.name, points, tried, findings)


def assert_survives_crashes_sync(task: Task[..., Any], *args: Any, **options: Any) -> Survival:
    """assert_survives_crashes() for code that is not async."""
    return run(assert_survives_crashes(task, *args, **options), "assert_survives_crashes")


class _Trial:
    """One job of one task, run from nothing as often as need be."""

    def __init__(
        self,
        task: Task[..., Any],
        new: NewJob,
        *,
        effects: Callable[[], Any],
        reset: Callable[[], Any] | None,
        at: Sequence[str | Callable[..., Any]],
        within: Iterable[object],
        url: str | None,
        patience: Duration,
    ) -> None:
        from rota.app import Rota

        if not isinstance(task.home, Rota):
            raise TaskError(f"{task.name} belongs to no app, so it cannot be run.")
        self.new = new
        self._app, self._task = task.home, task
        self._effects, self._reset, self._at, self._patience = effects, reset, at, patience
        self._scope = Scope.of(task, within)
        self._url = None if url is None else for_tests(self._app, url)
        self._untouched: Any = _UNKNOWN

    async def calm(self) -> tuple[Ended, list[Point]]:
        """A run without a crash: what it does, and where it could have crashed."""
        if self._url is not None:  # before the first time that everything there is removed
            await prepare(open_store(self._url, self._app.settings), self._url, given=True, fresh=True)
        await self._begin_anew()
        self._untouched = await self._told()
        known = drivers()
        recorder = Recorder(self.new)
        ended = await self.run(recorder)
        if drivers() != known:  # it loaded a driver itself: only now its commits are seen
            recorder = Recorder(self.new)
            ended = await self.run(recorder)
        if ended.job.state is not State.COMPLETED:
            raise AssertionError(
                f"{self._task.name} must be able to complete before it can be crashed, and without any crash it is "
                f"{ended.job.state}: {ended.job.error_message or ended.job.reason or 'no message'}."
            )
        reached = {point.what for point in recorder.points}
        for missed in (name for name in map(name_of, self._at) if name not in reached):
            raise AssertionError(f"{self._task.name} never calls {missed}, which at= names as a crash point.")
        return ended, recorder.points

    async def run(self, trap: Recorder) -> Ended:
        """Run the job from nothing to its end, through the crash that the trap brings."""
        await self._begin_anew()
        clock = StandingClock()
        if self._url is not None:
            empty_database(self._url)
        store = open_store(self._url or "memory://", self._app.settings, clock=clock)
        try:
            return await self._run_on(store, clock, trap)
        finally:
            await store.close()

    async def _run_on(self, store: Store, clock: StandingClock, trap: Recorder) -> Ended:
        kit = _TrialKit(self._app, store, clock, timeout=self._patience)
        kit.recorder, kit.scope = trap, self._scope
        with stands_in(self._app, kit.front), around(self._at, commits=True):
            await store.enqueue([self.new])
            await kit.drain(retries=True, limit=LIMIT)
        [job] = await store.get([self.new.id])
        others = await waiting(store, *State)
        enqueued = Counter(_described(other) for other in others if other.id != job.id)
        return Ended(job, await self._told(), enqueued)

    async def _told(self) -> Any:
        """What `effects()` tells now. A list that lives on would be equal to itself, whatever became of it."""
        return _kept(await _answer(self._effects))

    async def _begin_anew(self) -> None:
        if self._reset is not None:
            await _answer(self._reset)
        if self._untouched is not _UNKNOWN and await self._told() != self._untouched:
            how = "reset() did not bring them back" if self._reset else "Give a reset= that brings them back"
            raise RotaError(
                f"effects() must tell the same before each run. Before the first it told {self._untouched!r:.200}, now "
                f"{await self._told()!r:.200}. {how} to what they were."
            )


class _TrialKit(Kit):
    """A kit whose workers can die anywhere in one job."""

    recorder: Recorder
    scope: Scope

    def _shift(self, check: Callable[[], None], **watched: Any) -> Shift:
        return super()._shift(check, **({"trap": self.recorder, "scope": self.scope} | watched))


def _chosen(points: Sequence[Point], most: int) -> list[int]:
    """The numbers of the points to try: all of them, or of each place its first, its last and some between."""
    if len(points) <= most:
        return list(range(len(points)))
    places: dict[Point, list[int]] = {}
    for number, point in enumerate(points):
        places.setdefault(point, []).append(number)
    chosen: set[int] = set()
    for visits in places.values():
        chosen |= {visits[0], visits[-1]}
    if len(chosen) > most:
        return sorted(chosen)[:most]
    rest = [number for number in range(len(points)) if number not in chosen]
    step = max(1, len(rest) // max(1, most - len(chosen)))
    return sorted(chosen | set(rest[::step][: most - len(chosen)]))


def _described(job: Job) -> str:
    tenant = f", tenant {job.tenant}" if job.tenant else ""
    return f"{job.task} {job.payload_json} in queue {job.queue}{tenant}"


def _kept(value: Any) -> Any:
    """Containers copied, and what is in them as it is: not everything can be copied (calls of a mock cannot)."""
    if isinstance(value, dict):
        return {name: _kept(part) for name, part in value.items()}
    if isinstance(value, (list, deque)):
        return [_kept(part) for part in value]
    if type(value) is tuple:
        return tuple(_kept(part) for part in value)
    return set(value) if isinstance(value, set) else value


async def _answer(question: Callable[[], Any]) -> Any:
    answer = question()
    return await answer if inspect.isawaitable(answer) else answer
