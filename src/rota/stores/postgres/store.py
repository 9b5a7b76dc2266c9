"""PostgresStore: the contract, each verb handed to the module that knows it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import psycopg

from rota._core.actions import Audit, Change
from rota._core.deploy import Waiting
from rota._core.depths import Depths
from rota._core.explanation import Standing
from rota._core.job import Job, NewJob, Row
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
from rota._core.series import Series, TenantSeries
from rota._core.suspects import Crash, ParkedTask
from rota._core.task_spec import TaskSpec
from rota._core.worker_order import OrderVerb
from rota.stores.contract import (
    Attempt,
    Beat,
    Count,
    Enqueued,
    Finding,
    Hint,
    JobFilter,
    SessionRecord,
    SessionStart,
    Settled,
    Wanted,
)
from rota.stores.migration_contract import SchemaState
from rota.stores.numbers_contract import Head
from rota.stores.postgres import diagnose, migrate
from rota.stores.postgres.account import Account, Ledger
from rota.stores.postgres.address import Address
from rota.stores.postgres.claim import Claims
from rota.stores.postgres.connections import Connection, Connections, PerLoop
from rota.stores.postgres.depths import Sampler
from rota.stores.postgres.enqueue import Enqueuer
from rota.stores.postgres.faults import explained
from rota.stores.postgres.foreign import Foreign
from rota.stores.postgres.lent import Lending
from rota.stores.postgres.listen import Listener
from rota.stores.postgres.logs import JobLogs
from rota.stores.postgres.numbers import Numbers
from rota.stores.postgres.operators import Operators
from rota.stores.postgres.own import JobTransaction
from rota.stores.postgres.reads import Reads
from rota.stores.postgres.retention import Pruner, Retained
from rota.stores.postgres.schedules import Schedules
from rota.stores.postgres.sessions import Sessions
from rota.stores.postgres.settle import Settler
from rota.stores.postgres.suspects import Suspects
from rota.stores.postgres.upkeep import Upkeep
from rota.stores.retention_contract import Retention, Tidied
from rota.stores.tally_contract import Tally

Found = TypeVar("Found")


class Desk(NamedTuple):
    """Everything that one event loop needs: its connections and the verbs on them."""

    connections: Connections
    enqueuer: Enqueuer
    claims: Claims
    settler: Settler
    sessions: Sessions
    reads: Reads
    operators: Operators
    upkeep: Upkeep
    pruner: Pruner
    schedules: Schedules
    suspects: Suspects
    numbers: Numbers
    sampler: Sampler
    ledger: Ledger
    logs: JobLogs
    listener: Listener

    async def close(self) -> None:
        await self.enqueuer.close()
        await self.connections.close()

    def abandon(self) -> None:
        self.connections.abandon()


class PostgresStore(Account, Retained):
    """Jobs in schema `rota` of a PostgreSQL database.

    May be used from several event loops and threads; each loop has its own connections.
    `clock` replaces the server's clock in tests; `find` is that of `Address`.
    """

    name = "PostgreSQL"

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], datetime] | None = None,
        listen_url: str | None = None,
        find: Callable[[], str | None] | None = None,
    ) -> None:
        self._server, self._clock, self._listen_url = Address(url, find), clock, listen_url
        self._foreign = Foreign(self._server, clock)
        self._lending = Lending(self._server)
        self._desks: PerLoop[Desk] = PerLoop(self._make_desk)

    @property
    def url(self) -> str:
        return self._server.url

    def _make_desk(self) -> Desk:
        connections = Connections(self._server, self._clock)
        claims = Claims(connections)
        settler = Settler(connections, claims)
        pruner = Pruner(connections)
        return Desk(
            connections,
            Enqueuer(connections, claims),
            claims,
            settler,
            Sessions(connections),
            Reads(connections),
            Operators(connections, settler),
            Upkeep(connections, pruner),
            pruner,
            Schedules(connections),
            Suspects(connections),
            Numbers(connections),
            Sampler(connections),
            Ledger.on(connections, settler.keys),
            JobLogs(connections),
            Listener(connections, claims, self._listen_url),
        )

    async def backlog(self, queue: str, *, cap: int, by_tenant: bool) -> dict[str | None, int]:
        return await self._desks().reads.backlog(queue, cap, by_tenant=by_tenant)

    async def keep_logs(self, tails: Sequence[LogTail]) -> None:
        await self._desks().logs.keep(tails)

    async def logs(self, job_id: UUID) -> list[LogTail]:
        return await self._desks().logs.read(job_id)

    def _ledger(self) -> Ledger:
        return self._desks().ledger

    def _pruner(self) -> Pruner:
        return self._desks().pruner

    # Jobs

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._desks().enqueuer.enqueue(jobs)

    async def enqueue_stream(self, like: NewJob, rows: Iterable[Row]) -> list[UUID]:
        return await self._desks().enqueuer.stream(like, rows)

    def enqueue_within(self, tx: Any, jobs: Sequence[NewJob]) -> list[Enqueued] | Awaitable[list[Enqueued]]:
        return self._foreign.enqueue_within(tx, jobs)

    def own_transaction(self, job: Job, *, rehearsal: bool = False) -> JobTransaction:
        return JobTransaction(self._lending, self._clock, job, rehearsal=rehearsal)

    async def claim(self, wanted: Wanted, *, session: UUID) -> list[Job]:
        return await self._desks().settler.claim(wanted, session)

    async def settle(self, transitions: Sequence[Transition]) -> list[Settled]:
        return await self._desks().settler.settle(transitions)

    async def exchange(
        self, transitions: Sequence[Transition], wanted: Wanted, *, session: UUID
    ) -> tuple[list[Settled], list[Job]]:
        return await self._desks().settler.exchange(transitions, wanted, session)

    async def next_due(self, queues: tuple[str, ...] | None = None) -> float | None:
        return await self._desks().claims.next_due(queues)

    async def get(self, job_ids: Sequence[UUID]) -> list[Job]:
        return await self._desks().reads.get(job_ids)

    async def find(self, wanted: JobFilter) -> list[Job]:
        return await self._desks().reads.find(wanted)

    async def attempts(self, job_id: UUID, *, limit: int | None = None) -> list[Attempt]:
        return await self._desks().reads.attempts(job_id, limit)

    async def counts(self) -> list[Count]:
        return await self._desks().reads.counts()

    async def count_found(self, wanted: JobFilter, *, cap: int) -> int:
        return await self._desks().reads.count_found(wanted, cap)

    async def tally(self, tenant: str | None = None, *, cap: int) -> list[Tally]:
        return await self._desks().reads.tally(tenant, cap)

    async def standing(self, job: Job, *, cap: int) -> Standing:
        return await self._desks().reads.standing(job, cap)

    async def waiting(self, *, sample: int) -> list[Waiting]:
        return await self._desks().reads.waiting(sample)

    async def change(self, change: Change, audit: Audit) -> Settled:
        return await self._desks().operators.change(change, audit)

    async def audit(
        self, job_id: UUID | None = None, *, about: str | None = None, limit: int = 50
    ) -> list[Audit]:
        return await self._desks().reads.audit(job_id, about, limit)

    # Sessions

    async def open_session(self, session: SessionStart, *, lease: float) -> None:
        await self._desks().sessions.open(session, lease)

    async def beat(
        self,
        session: UUID,
        *,
        lease: float,
        holding: Mapping[UUID, int],
        strays: bool = False,
        memory: int | None = None,
    ) -> Beat:
        return await self._desks().sessions.beat(session, lease, holding, strays, memory)

    async def order_worker(self, session: UUID, verb: OrderVerb, audit: Audit) -> bool:
        return await self._desks().sessions.order(session, verb, audit)

    async def end_session(self, session: UUID) -> None:
        await self._desks().sessions.end(session)

    async def end_expired(self) -> float | None:
        return await self._desks().sessions.end_expired()

    async def lost(self, *, limit: int) -> list[Job]:
        return await self._desks().sessions.lost(limit)

    async def sessions(self) -> list[SessionRecord]:
        return await self._desks().sessions.records()

    # Tasks and upkeep

    async def publish(self, tasks: Sequence[TaskSpec], audit: Audit | None = None) -> None:
        await self._desks().upkeep.publish(tasks, audit)

    async def tasks(self) -> list[TaskSpec]:
        return await self._desks().reads.tasks()

    async def tidy(self, retention: Retention) -> Tidied:
        return await self._desks().upkeep.tidy(retention)

    async def unpark(self) -> int:
        return await self._desks().upkeep.unpark() + await self._desks().suspects.unpark()

    # Schedules

    async def publish_schedules(self, specs: Sequence[ScheduleSpec]) -> None:
        await self._desks().schedules.publish(specs)

    async def roster(self, declared: Sequence[str] | None = None) -> Roster:
        return await self._desks().schedules.roster(declared)

    async def fire(self, firing: Firing, audit: Audit | None = None) -> list[Fired]:
        return await self._desks().schedules.fire(firing, audit)

    async def change_schedule(self, change: ScheduleChange, audit: Audit) -> ScheduleRecord | None:
        return await self._desks().schedules.change(change, audit)

    async def delete_schedule(self, name: str, version: int, audit: Audit) -> bool:
        return await self._desks().schedules.delete(name, version, audit)

    async def ticks(self, schedule: str, *, limit: int = 20) -> list[TickRecord]:
        return await self._desks().schedules.ticks(schedule, limit)

    async def tick_days(self, schedule: str, since: datetime, *, late: float, limit: int) -> list[TickDay]:
        return await self._desks().schedules.tick_days(schedule, since, late, limit)

    # Suspects

    async def note_crash(self, crash: Crash, *, limit: int, within: float) -> ParkedTask | None:
        return await self._desks().suspects.note_crash(crash, limit, within)

    async def parked_tasks(self) -> list[ParkedTask]:
        return await self._desks().suspects.parked()

    async def release_task(self, task: str, audit: Audit, *, code_version: str | None = None) -> int | None:
        return await self._desks().suspects.release(task, audit, code_version)

    # Numbers

    async def note_minutes(self, session: UUID, minutes: Sequence[Minute]) -> None:
        await self._desks().numbers.note(session, minutes)

    async def roll(self) -> int:
        return await self._desks().numbers.roll()

    async def figures(self, since: float) -> Figures:
        return await self._desks().numbers.figures(since)

    async def series(
        self,
        since: float,
        step: float,
        *,
        queue: str | None = None,
        task: str | None = None,
        apart: bool = True,
    ) -> Series:
        return await self._desks().numbers.series(since, step, queue=queue, task=task, apart=apart)

    async def tenant_series(self, since: float, step: float, *, top: int) -> TenantSeries:
        return await self._desks().numbers.tenant_series(since, step, top)

    async def note_depths(self) -> bool:
        return await self._desks().sampler.note()

    async def depths(self, since: float, step: float) -> Depths:
        return await self._desks().sampler.read(since, step)

    async def publish_queues(self, queues: Sequence[Queue]) -> None:
        await self._desks().numbers.publish_queues(queues)

    async def queues(self) -> list[Queue]:
        return await self._desks().numbers.queues()

    async def heads(self) -> list[Head]:
        return await self._desks().numbers.heads()

    # Wake-ups

    async def listen(self, on_hint: Callable[[Hint], None]) -> None:
        await self._desks().listener.listen(on_hint)

    @property
    def hearing(self) -> bool:
        """Whether hints arrive in the calling event loop now."""
        return self._desks().listener.hearing

    # The store itself

    async def now(self) -> datetime:
        return await self._desks().reads.now()

    async def open(self) -> None:
        try:
            await self._desks().connections.pool()
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise explained(error, self.url) from error

    async def migrate(self, *, to: int | None = None) -> list[str]:
        return await self._alone(lambda connection: migrate.migrate(connection, self.url, to))

    async def pending_migrations(self) -> list[str]:
        return (await self.schema_state()).pending()

    async def schema_state(self) -> SchemaState:
        return await self._alone(migrate.state)

    async def _alone(self, call: Callable[[Connection], Awaitable[Found]]) -> Found:
        """On a connection of its own: the pool would refuse a schema that is not there yet."""
        try:
            connection = await self._desks().connections.connect()
        except (psycopg.Error, OSError) as error:
            raise explained(error, self.url) from error
        try:
            return await call(connection)
        except (psycopg.Error, OSError) as error:
            raise explained(error, self.url) from error
        finally:
            await connection.close()

    async def diagnose(self) -> list[Finding]:
        return await diagnose.diagnose(self._desks().connections, self._listen_url)

    async def close(self) -> None:
        await asyncio.shield(self._lending.close())
        await asyncio.shield(self._desks.close())
