"""Enqueue: single calls travel together, many go by COPY, keyed ones through the function that knows the rules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from uuid import UUID

import psycopg

from rota._core.job import NewJob, Row
from rota._core.redaction import redacted_text
from rota.errors import EnqueueError, PayloadInvalid, RequiredMissing, StoreError
from rota.stores.contract import Enqueued, Stored
from rota.stores.postgres import binary, encoding
from rota.stores.postgres.connections import CALL_SECONDS
from rota.stores.postgres.rows import uuids
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.claim import Claims
    from rota.stores.postgres.connections import Connection, Connections

T = TypeVar("T")
_NOBODY = UUID(int=0)
Spot: TypeAlias = "tuple[str, int, bool]"

COPY_FROM = 200
"""From this many jobs on COPY is faster than one INSERT."""
COPY_CHUNK = 250
"""Few enough that the socket takes them at once, and the server reads them while we make the next."""
INSERT_CHUNK = 5_000
BULK_SECONDS = 600.0
TOGETHER = 500
"""At most so many single enqueues travel in one statement."""
FRESH_SECONDS = 10.0
REMEMBERED = 10_000
ENFORCED = "jobs_carry_what_rules_ask"
"""The constraint that rota.enforce_rules() puts on the table of jobs."""
HINT_PAUSE = 0.005
"""At most one hint in so many seconds; the last one is never left out."""


class Enqueuer:
    """The enqueues of one event loop."""

    def __init__(self, connections: Connections, claims: Claims) -> None:
        self._connections = connections
        self._claims = claims
        self._waiting: list[tuple[NewJob, asyncio.Future[Enqueued]]] = []
        self._sender: asyncio.Task[None] | None = None
        self._under_way = False
        self._hinted_at = 0.0
        self._sent: dict[UUID, None] = {}
        self._late: set[Spot] = set()
        self._hinter: asyncio.Task[None] | None = None

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        if not jobs:
            return []
        spots = _spots(jobs)
        if any(job.key is not None or job.unique_key is not None for job in jobs):
            answers = await self._store_keyed(jobs)
        elif len(jobs) == 1:
            answers = [await self._together(jobs[0])]
        elif len(jobs) < COPY_FROM:
            await self._insert(jobs)
            answers = _created(job.id for job in jobs)
        else:
            answers = _created(
                await self._copy(_runs(jobs), again=self._sent_before([job.id for job in jobs]))
            )
        for queue, priority, gated in spots:
            self._claims.hint(queue, priority, gated=gated)
        return answers

    async def _together(self, job: NewJob) -> Enqueued:
        """The first goes at once; what arrives while it is under way is the next statement."""
        if self._under_way:
            future: asyncio.Future[Enqueued] = asyncio.get_running_loop().create_future()
            self._waiting.append((job, future))
            return await future
        self._under_way = True
        try:
            await self._insert([job])
        finally:
            if self._waiting:
                self._sender = asyncio.create_task(self._send(), name="rota-enqueue")
            else:
                self._under_way = False
        return Enqueued(job.id, Stored.CREATED)

    async def _send(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:TOGETHER], self._waiting[TOGETHER:]
                await self._send_batch(batch)
        finally:
            self._sender = None
            self._under_way = False

    async def _send_batch(self, batch: list[tuple[NewJob, asyncio.Future[Enqueued]]]) -> None:
        try:
            await self._insert([job for job, _ in batch])
        except EnqueueError as error:
            if len(batch) > 1:  # one bad job must not fail its neighbours
                for one in batch:
                    await self._send_batch([one])
                return
            self._fail(batch, error)
        except Exception as error:
            self._fail(batch, error)
        else:
            for job, future in batch:
                if not future.done():
                    future.set_result(Enqueued(job.id, Stored.CREATED))

    @staticmethod
    def _fail(batch: list[tuple[NewJob, asyncio.Future[Enqueued]]], error: Exception) -> None:
        for _, future in batch:
            if not future.done():
                future.set_exception(error)

    async def _insert(self, jobs: Sequence[NewJob]) -> None:
        verb = "enqueue" if len(jobs) > 1 else "enqueue_one"
        values = {"jobs": encoding.as_json(jobs)} if len(jobs) > 1 else encoding.as_values(jobs[0])
        hint = self._may_hint()
        again = self._sent_before([job.id for job in jobs])

        async def call(connection: Connection, repeated: bool) -> None:
            parameters = {**values, "now": self._connections.now(), "hint": hint or repeated}
            if not (repeated or again):
                await connection.ask(verb, parameters)
                return
            async with connection.transaction():
                await connection.ask(verb, parameters)
                await connection.execute(statement("undo_repeated"), {"ids": uuids(job.id for job in jobs)})

        await self._run(call)
        if hint:
            if self._late:
                self._late -= _spots(jobs)
        else:
            self._hint_later(jobs)

    async def stream(self, like: NewJob, rows: Iterable[Row]) -> list[UUID]:
        """Store plain jobs while they are still being made; all or none."""
        source = iter(rows)
        head = list(islice(source, COPY_FROM))
        if len(head) < COPY_FROM:
            return [answer.id for answer in await self.enqueue([_job(like, row) for row in head])]
        again = self._sent_before([id_ for id_, _ in head])
        ids = await self._copy([(like, chain(head, source))], again=again)
        self._claims.hint(like.queue, like.priority, gated=like.gate is not None)
        return ids

    async def _copy(self, runs: Iterable[tuple[NewJob, Iterable[Row]]], *, again: bool) -> list[UUID]:
        """All or nothing, in one transaction; a repeated id or a lost connection sends them by INSERT instead.

        Jobs come in runs, each like one job.
        """
        made = list[tuple[NewJob, list[Row]]]()
        source = _chunks(runs)

        def taken() -> Iterator[tuple[NewJob, list[Row]]]:
            for like, chunk in source:
                made.append((like, chunk))
                yield like, chunk

        async def call(connection: Connection, repeated: bool) -> None:
            async with connection.transaction():
                if repeated or again:
                    for _ in taken():
                        pass
                    await self._insert_many(
                        connection, [_job(like, row) for like, rows in made for row in rows]
                    )
                else:
                    now = self._connections.now() or await _server_time(connection)
                    await _send_copy(connection, taken(), now)
                await _hint(connection, spots=_spots([like for like, _ in made]))

        try:
            await self._run(call, seconds=BULK_SECONDS)
        except psycopg.errors.UniqueViolation:
            await self._run(lambda connection, _: call(connection, repeated=True), seconds=BULK_SECONDS)
        return [id_ for _, chunk in made for id_, _ in chunk]

    async def _insert_many(self, connection: Connection, jobs: Sequence[NewJob]) -> None:
        waiting = iter(jobs)
        while chunk := list(islice(waiting, INSERT_CHUNK)):
            await connection.execute(
                statement("enqueue"),
                {"jobs": encoding.as_json(chunk), "now": self._connections.now(), "hint": False},
            )
        await connection.execute(statement("undo_repeated"), {"ids": uuids(job.id for job in jobs)})

    async def _store_keyed(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        text = encoding.as_json(jobs)

        async def call(connection: Connection, _: bool) -> list[Enqueued]:
            rows = await connection.ask("enqueue_keyed", {"jobs": text, "now": self._connections.now()})
            return [Enqueued(row[1], Stored(row[2])) for row in sorted(rows)]

        return await self._run(call, seconds=CALL_SECONDS if len(jobs) < COPY_FROM else BULK_SECONDS)

    def _sent_before(self, ids: Sequence[UUID]) -> bool:
        """Whether these may have been stored by an earlier call, so that the history must be asked.

        Ids are made just before their job is sent and carry their time: an id
        that is not fresh, or that we remember, is a repeat. (Of a large batch
        the first id stands for all.)
        """
        old = time.time() - FRESH_SECONDS
        again = (ids[0].int >> 80) / 1000 < old or any(id_ in self._sent for id_ in ids[:COPY_FROM])
        self._sent.update(dict.fromkeys(ids[: 1 if len(ids) >= COPY_FROM else None]))
        while len(self._sent) > REMEMBERED:
            del self._sent[next(iter(self._sent))]
        return again

    async def _run(
        self, call: Callable[[Connection, bool], Awaitable[T]], *, seconds: float = CALL_SECONDS
    ) -> T:
        try:
            return await self._connections.run(call, seconds=seconds)
        except psycopg.errors.CheckViolation as error:
            if error.diag.constraint_name != ENFORCED:
                raise
            raise RequiredMissing(
                "this database takes only jobs with a tenant, a correlation_id, a key and a category "
                "(rota.enforce_rules), and this one lacks some of them. Nothing was stored. Give them by using(); "
                'Rota(rules="strict") says which ones are missing.'
            ) from error
        except psycopg.DataError as error:
            reason = redacted_text(" ".join(str(error).split()))
            raise PayloadInvalid(
                f"PostgreSQL cannot store this job: {reason}. Nothing was stored; correct the value."
            ) from error

    def _may_hint(self) -> bool:
        now = time.monotonic()
        if now - self._hinted_at < HINT_PAUSE:
            return False
        self._hinted_at = now
        return True

    def _hint_later(self, jobs: Sequence[NewJob]) -> None:
        """Workers must hear of the last of a burst too, or it would wait for their poll."""
        self._late |= _spots(jobs)
        if self._hinter is None:
            self._hinter = asyncio.create_task(self._hint_late(), name="rota-hint")

    async def _hint_late(self) -> None:
        """Hint for those that were stored without one, once no later enqueue has done it for them."""
        try:
            while self._late:
                # Later than the next enqueue of a steady flow, which hints for these too.
                pause = self._hinted_at + 2 * HINT_PAUSE - time.monotonic()
                if pause > 0:
                    await asyncio.sleep(pause)
                    continue
                spots, self._late = self._late, set()
                self._hinted_at = time.monotonic()
                with suppress(StoreError):  # a hint: polling finds the jobs
                    await self._connections.run(partial(_hint, spots=spots), within=0)
        finally:
            self._hinter = None

    async def close(self) -> None:
        """Let what is under way arrive."""
        for task in (self._sender, self._hinter):
            if task is not None:
                with suppress(Exception):
                    await task


def _created(ids: Iterable[UUID]) -> list[Enqueued]:
    """The answer for jobs that are all new."""
    return [Enqueued(id_, Stored.CREATED) for id_ in ids]


def _job(like: NewJob, row: Row) -> NewJob:
    return NewJob(row[0], like.task, row[1], *like[3:])


def _runs(jobs: Iterable[NewJob]) -> Iterator[tuple[NewJob, Iterable[Row]]]:
    """Neighbours that are alike, but for id and payload."""
    for (task, rest), alike in groupby(jobs, key=lambda job: (job.task, job[3:])):
        yield NewJob(_NOBODY, task, "", *rest), [(job.id, job.payload_json) for job in alike]


def _chunks(runs: Iterable[tuple[NewJob, Iterable[Row]]]) -> Iterator[tuple[NewJob, list[Row]]]:
    for like, rows in runs:
        source = iter(rows)
        while chunk := list(islice(source, COPY_CHUNK)):
            yield like, chunk


async def _send_copy(
    connection: Connection, chunks: Iterable[tuple[NewJob, list[Row]]], now: datetime
) -> None:
    alike: binary.Alike | None = None
    written, rows = [binary.HEADER], 0
    async with connection.cursor().copy(statement("copy")) as copy:
        for like, chunk in chunks:
            if alike is None or alike.like is not like:
                alike = binary.Alike(like, now, connection.info.encoding)
            written.append(alike.written(chunk))
            rows += len(chunk)
            if rows >= COPY_CHUNK:  # jobs that are all different are sent together, too
                await copy.write(b"".join(written))
                await asyncio.sleep(0)  # a write seldom waits, and others of this loop want their turn
                written, rows = [], 0
        await copy.write(b"".join([*written, binary.TRAILER]))


def _spots(jobs: Sequence[NewJob]) -> set[Spot]:
    return {(job.queue, job.priority, job.gate is not None) for job in jobs}


async def _hint(connection: Connection, _: bool = False, *, spots: set[Spot]) -> None:
    queues, priorities, gated = zip(*sorted(spots), strict=True)
    await connection.execute(
        statement("hint"), {"queues": list(queues), "priorities": list(priorities), "gated": list(gated)}
    )


async def _server_time(connection: Connection) -> datetime:
    row = await (await connection.execute("SELECT now()")).fetchone()
    assert row is not None
    moment: datetime = row[0]
    return moment
