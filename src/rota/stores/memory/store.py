"""The memory store: every promise of the contract, one lock, nothing kept after the process ends."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from rota._core.actions import Audit, Change
from rota._core.deploy import Waiting
from rota._core.depths import Depths
from rota._core.explanation import Standing
from rota._core.job import Job, NewJob
from rota._core.job_log import LogTail
from rota._core.numbers import Figures, Minute
from rota._core.outcome import Transition
from rota._core.queue import Queue
from rota._core.schedule import (
    Fired,
    Firing,
    Roster,
    ScheduleChange,
    ScheduleRecord,
    ScheduleSpec,
    TickDay,
    TickRecord,
)
from rota._core.series import Series, TenantSeries, together
from rota._core.suspects import Crash, ParkedTask
from rota._core.task_spec import TaskSpec
from rota._core.worker_order import OrderVerb
from rota.stores.contract import (
    Attempt,
    Beat,
    Count,
    Enqueued,
    Hint,
    JobFilter,
    SessionRecord,
    SessionStart,
    Settled,
    Wanted,
)
from rota.stores.memory import (
    changing,
    claiming,
    enqueueing,
    numbers,
    reading,
    schedules,
    sessions,
    settling,
    suspects,
    tidying,
)
from rota.stores.memory.account import Account
from rota.stores.memory.book import Book
from rota.stores.memory.listening import Listeners
from rota.stores.memory.retention import Retained
from rota.stores.numbers_contract import Head
from rota.stores.retention_contract import Retention, Tidied
from rota.stores.tally_contract import Tally


class MemoryStore(Account, Retained):
    """A whole store in this process's memory; the docstrings of `stores/contract.py` hold for every verb.

    It may be used from several threads and event loops at once. Each verb is
    one step under the lock, and hints leave after the step.
    """

    name = "memory"

    def __init__(self, *, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock or (lambda: datetime.now(UTC))
        self._lock = threading.Lock()
        self._book = Book()
        self._listeners = Listeners()

    @contextlib.contextmanager
    def _step(self) -> Iterator[datetime]:
        """Hold the lock, give the moment that counts for the whole step, then tell listeners what it brought."""
        with self._lock:
            yield self._clock()
            hints, self._book.hints = self._book.hints, []
        self._listeners.tell(hints)

    async def now(self) -> datetime:
        return self._clock()

    async def open(self) -> None:
        """Nothing to reach: it is here."""

    async def migrate(self, *, to: int | None = None) -> list[str]:  # noqa: ARG002 - the contract's signature
        """No schema, so nothing to apply."""
        return []

    async def close(self) -> None:
        """No connections to let go of; what is stored stays for the other users of this object."""

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        with self._step() as now:
            return [enqueueing.enqueue(self._book, job, now) for job in jobs]

    async def claim(self, wanted: Wanted, *, session: UUID) -> list[Job]:
        with self._step() as now:
            return claiming.claim(self._book, wanted, session, now)

    async def settle(self, transitions: Sequence[Transition]) -> list[Settled]:
        with self._step() as now:
            return [settling.settle(self._book, transition, now) for transition in transitions]

    async def exchange(
        self, transitions: Sequence[Transition], wanted: Wanted, *, session: UUID
    ) -> tuple[list[Settled], list[Job]]:
        with self._step() as now:
            settled = [settling.settle(self._book, transition, now) for transition in transitions]
            return settled, claiming.claim(self._book, wanted, session, now)

    async def next_due(self, queues: tuple[str, ...] | None = None) -> float | None:
        with self._step() as now:
            return claiming.next_due(self._book, queues, now)

    async def get(self, job_ids: Sequence[UUID]) -> list[Job]:
        with self._step():
            return [self._book.jobs[job_id] for job_id in dict.fromkeys(job_ids) if job_id in self._book.jobs]

    async def find(self, wanted: JobFilter) -> list[Job]:
        with self._step():
            return reading.find(self._book, wanted)

    async def backlog(self, queue: str, *, cap: int, by_tenant: bool) -> dict[str | None, int]:
        with self._step():
            return reading.backlog(self._book, queue, cap, by_tenant=by_tenant)

    async def keep_logs(self, tails: Sequence[LogTail]) -> None:
        with self._step():
            for tail in tails:
                kept = self._book.logs.setdefault(tail.job_id, {})
                known = kept.get(tail.version)
                if known is None or tail.written >= known.written:
                    kept[tail.version] = tail

    async def logs(self, job_id: UUID) -> list[LogTail]:
        with self._step():
            return [tail for _, tail in sorted(self._book.logs.get(job_id, {}).items())]

    async def attempts(self, job_id: UUID, *, limit: int | None = None) -> list[Attempt]:
        with self._step():
            found = list(self._book.attempts.get(job_id, ()))
            return found if limit is None else found[max(len(found) - limit, 0) :]

    async def counts(self) -> list[Count]:
        with self._step():
            return reading.counts(self._book)

    async def count_found(self, wanted: JobFilter, *, cap: int) -> int:
        with self._step():
            return len(reading.find(self._book, wanted._replace(limit=cap)))

    async def tally(self, tenant: str | None = None, *, cap: int) -> list[Tally]:
        with self._step():
            return reading.tally(self._book, tenant, cap)

    async def standing(self, job: Job, *, cap: int) -> Standing:
        with self._step() as now:
            return reading.standing(self._book, job, cap, now)

    async def waiting(self, *, sample: int) -> list[Waiting]:
        with self._step():
            return reading.waiting(self._book, sample)

    async def change(self, change: Change, audit: Audit) -> Settled:
        with self._step() as now:
            return changing.change(self._book, change, audit, now)

    async def audit(
        self, job_id: UUID | None = None, *, about: str | None = None, limit: int = 50
    ) -> list[Audit]:
        with self._step():
            return changing.trail(self._book, job_id, about, limit)

    async def open_session(self, session: SessionStart, *, lease: float) -> None:
        with self._step() as now:
            sessions.begin(self._book, session, lease, now)

    async def beat(
        self,
        session: UUID,
        *,
        lease: float,
        holding: Mapping[UUID, int],
        strays: bool = False,
        memory: int | None = None,
    ) -> Beat:
        with self._step() as now:
            return sessions.beat(self._book, session, lease, holding, now, strays=strays, memory=memory)

    async def order_worker(self, session: UUID, verb: OrderVerb, audit: Audit) -> bool:
        with self._step() as now:
            return sessions.order(self._book, session, verb, audit, now)

    async def end_session(self, session: UUID) -> None:
        with self._step() as now:
            sessions.end(self._book, session, now)

    async def end_expired(self) -> float | None:
        with self._step() as now:
            return sessions.end_expired(self._book, now)

    async def lost(self, *, limit: int) -> list[Job]:
        with self._step():
            return sessions.lost(self._book, limit)

    async def sessions(self) -> list[SessionRecord]:
        with self._step() as now:
            return sessions.recent(self._book, now)

    async def publish(self, tasks: Sequence[TaskSpec], audit: Audit | None = None) -> None:
        with self._step() as now:
            suspects.publish(self._book, tasks, now)
            if audit is not None:
                self._book.tell(audit, now)

    async def tasks(self) -> list[TaskSpec]:
        with self._step():
            return [self._book.tasks[name] for name in sorted(self._book.tasks)]

    async def tidy(self, retention: Retention) -> Tidied:
        with self._step() as now:
            return tidying.tidy(self._book, retention, now)

    async def unpark(self) -> int:
        with self._step() as now:
            return claiming.unpark(self._book, now) + suspects.unpark(self._book, now)

    async def publish_schedules(self, specs: Sequence[ScheduleSpec]) -> None:
        with self._step() as now:
            schedules.publish(self._book, specs, now)

    async def roster(self, declared: Sequence[str] | None = None) -> Roster:
        with self._step() as now:
            return schedules.roster(self._book, declared, now)

    async def fire(self, firing: Firing, audit: Audit | None = None) -> list[Fired]:
        with self._step() as now:
            return schedules.fire(self._book, firing, audit, now)

    async def change_schedule(self, change: ScheduleChange, audit: Audit) -> ScheduleRecord | None:
        with self._step() as now:
            return schedules.change(self._book, change, audit, now)

    async def delete_schedule(self, name: str, version: int, audit: Audit) -> bool:
        with self._step() as now:
            return schedules.delete(self._book, name, version, audit, now)

    async def ticks(self, schedule: str, *, limit: int = 20) -> list[TickRecord]:
        with self._step():
            return schedules.ticks(self._book, schedule, limit)

    async def tick_days(self, schedule: str, since: datetime, *, late: float, limit: int) -> list[TickDay]:
        with self._step():
            return schedules.tick_days(self._book, schedule, since, late, limit)

    async def note_crash(self, crash: Crash, *, limit: int, within: float) -> ParkedTask | None:
        with self._step() as now:
            return suspects.note_crash(self._book, crash, limit, within, now)

    async def parked_tasks(self) -> list[ParkedTask]:
        with self._step():
            return suspects.parked_tasks(self._book)

    async def release_task(self, task: str, audit: Audit, *, code_version: str | None = None) -> int | None:
        with self._step() as now:
            return suspects.release(self._book, task, audit, code_version, now)

    async def note_minutes(self, session: UUID, minutes: Sequence[Minute]) -> None:
        with self._step() as now:
            numbers.note(self._book, session, minutes, now)

    async def roll(self) -> int:
        with self._step() as now:
            return numbers.roll(self._book, now)

    async def figures(self, since: float) -> Figures:
        with self._step() as now:
            return numbers.figures(self._book, since, now)

    async def series(
        self,
        since: float,
        step: float,
        *,
        queue: str | None = None,
        task: str | None = None,
        apart: bool = True,
    ) -> Series:
        with self._step() as now:
            found = numbers.series(self._book, since, step, now, queue=queue, task=task)
            return found if apart else together(found)

    async def tenant_series(self, since: float, step: float, *, top: int) -> TenantSeries:
        with self._step() as now:
            return numbers.tenant_series(self._book, since, step, now, top)

    async def note_depths(self) -> bool:
        with self._step() as now:
            return numbers.note_depths(self._book, now)

    async def depths(self, since: float, step: float) -> Depths:
        with self._step() as now:
            return numbers.depths(self._book, since, step, now)

    async def publish_queues(self, queues: Sequence[Queue]) -> None:
        with self._step():
            self._book.queues |= {queue.name: queue for queue in queues}

    async def queues(self) -> list[Queue]:
        with self._step():
            return [self._book.queues[name] for name in sorted(self._book.queues)]

    async def heads(self) -> list[Head]:
        with self._step():
            return numbers.heads(self._book)

    async def listen(self, on_hint: Callable[[Hint], None]) -> None:
        await self._listeners.listen(on_hint)
