"""A handler's own transaction: what it writes into the database of its job is committed together with the job's end.

The handler's blocks are savepoints in one transaction. When the handler has
returned, its worker completes the job in the same transaction, behind the
fence, and commits. So a crash leaves both or neither, and a worker that lost
its job can commit nothing.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import tuple_row

from rota._core.job import State
from rota.errors import JobChanged, StoreError, StoreUnavailable
from rota.stores.contract import Answer, Settled
from rota.stores.postgres.connections import CALL_SECONDS
from rota.stores.postgres.faults import explained
from rota.stores.postgres.lent import MOST, OPTIONS
from rota.stores.postgres.rows import integers, texts, uuids
from rota.stores.postgres.settle import NOTHING
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota._core.job import Job
    from rota._core.outcome import Transition
    from rota.stores.postgres.lent import Lending, LoopLending, SyncConnection
    from rota.stores.postgres.prompt import PromptConnection

UNDO_SECONDS = 2.0
"""How long the server may take to undo; then we hang up, and it undoes by itself."""


class JobTransaction:
    """One transaction of one attempt; nothing is opened before its first block."""

    def __init__(
        self, lending: Lending, clock: Callable[[], datetime] | None, job: Job, *, rehearsal: bool = False
    ) -> None:
        self._lending, self._clock, self._job, self._rehearsal = lending, clock, job, rehearsal
        self._plain: SyncConnection | None = None
        self._awaited: PromptConnection | None = None
        self._lender: LoopLending | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._blocks: list[Any] = []
        self._beginning = asyncio.Lock()
        self._ended = threading.RLock()
        """An undo waits for a completion in its thread: it must not lend the connection to others meanwhile."""

    # What a handler in a thread does

    def __enter__(self) -> SyncConnection:
        if self._awaited is not None or _in_a_loop():
            raise TypeError(
                f"{self._job.task} is a coroutine: write `async with current_job().transaction()`. "
                "`with` would keep every other job of its event loop waiting."
            )
        if self._plain is None:
            self._plain = self._begun()
        block = self._plain.transaction()
        block.__enter__()
        self._blocks.append(block)
        return self._plain

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return bool(self._blocks.pop().__exit__(kind, error, trace))

    def _begun(self) -> SyncConnection:
        lender = self._lending.to_threads
        for left in range(MOST, -1, -1):
            connection = lender.take()
            try:
                row = connection.execute(*self._still_mine()).fetchone()
            except BaseException as error:
                lender.give_back(connection)
                if not left or not _broken(connection, error):
                    raise
                continue  # it broke while nobody used it; so may the others have
            if row is not None:
                return connection
            connection.rollback()
            lender.give_back(connection)
            break
        raise JobChanged(self._job.id, "no longer this worker's")

    # What a coroutine does

    async def __aenter__(self) -> PromptConnection:
        if self._plain is not None:
            raise TypeError(f"{self._job.task} has begun its transaction with `with`: go on with `with`.")
        here = asyncio.get_running_loop()
        async with self._beginning:  # two coroutines of one handler may come at the same moment
            if self._awaited is None:
                lender = self._lending.to_loop()
                self._awaited = await self._begun_here(lender)
                self._loop, self._lender = here, lender
        if here is not self._loop:
            raise TypeError(f"the transaction of {self._job.task} belongs to the event loop that began it.")
        block = self._awaited.transaction()
        await block.__aenter__()
        self._blocks.append(block)
        return self._awaited

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return bool(await self._blocks.pop().__aexit__(kind, error, trace))

    async def _begun_here(self, lender: LoopLending) -> PromptConnection:
        for left in range(MOST, -1, -1):
            connection = await lender.take()
            try:
                async with asyncio.timeout(CALL_SECONDS):
                    row = await (await connection.execute(*self._still_mine())).fetchone()
            except BaseException as error:
                await lender.give_back(connection)
                if not left or not _broken(connection, error):
                    raise
                continue  # it broke while nobody used it; so may the others have
            if row is not None:
                return connection
            await connection.rollback()
            await lender.give_back(connection)
            break
        raise JobChanged(self._job.id, "no longer this worker's")

    def _still_mine(self) -> tuple[Any, dict[str, Any]]:
        if self._rehearsal:
            return "SELECT true", {}
        return statement("still_mine"), {"id": self._job.id, "version": self._job.version}

    # What the worker does

    async def complete(self, transition: Transition) -> Settled:
        if self._plain is not None:
            return await asyncio.to_thread(self._complete_plain, self._plain, transition)
        if self._awaited is None:  # asked for and never used: then only the job's end is committed
            async with self:
                pass
            assert self._awaited is not None
        if self._loop is not asyncio.get_running_loop():
            raise TypeError(
                f"{transition.job.task} began its transaction on an event loop of its own (asyncio.run), where nobody "
                "can commit it. Make the task a coroutine, or write `with current_job().transaction()`."
            )
        connection = self._awaited
        try:
            cursor = connection.cursor(row_factory=tuple_row)  # the handler may have chosen another
            [(now, day_there)] = await (await cursor.execute(*self._ending())).fetchall()
            if not day_there:
                await asyncio.to_thread(self._make_days, now)
            for verb, values in self._ends(transition, now):
                rows = await (await connection.execute(statement(verb), values)).fetchall()
                if rows and verb == "exchange":
                    await self.undo()
                    return Settled(transition.job.id, Answer.FENCED, None)
            await connection.commit()
        except psycopg.OperationalError as error:
            await self.undo()
            if not await asyncio.to_thread(self._landed):
                raise self._uncommitted(error) from error
        await self._give_back()
        return Settled(transition.job.id, Answer.APPLIED, transition.to)

    def _complete_plain(self, connection: SyncConnection, transition: Transition) -> Settled:
        with self._ended:
            try:
                cursor = connection.cursor(row_factory=tuple_row)  # the handler may have chosen another
                [(now, day_there)] = cursor.execute(*self._ending()).fetchall()
                if not day_there:
                    self._make_days(now)
                for verb, values in self._ends(transition, now):
                    rows = connection.execute(statement(verb), values).fetchall()
                    if rows and verb == "exchange":
                        self._undo_plain()
                        return Settled(transition.job.id, Answer.FENCED, None)
                connection.commit()
            except psycopg.OperationalError as error:
                self._undo_plain()
                if not self._landed():
                    raise self._uncommitted(error) from error
            self._undo_plain()
            return Settled(transition.job.id, Answer.APPLIED, transition.to)

    def _ending(self) -> tuple[Any, dict[str, Any]]:
        return statement("ending"), {"now": None if self._clock is None else self._clock()}

    def _make_days(self, now: datetime) -> None:
        """Nobody has made this day's table yet: no worker ran for a week, or a test moved the clock."""
        with psycopg.connect(self._lending.url, **OPTIONS | {"autocommit": True}) as connection:
            connection.execute(statement("make_days"), {"now": now})

    def _ends(self, transition: Transition, now: datetime) -> list[tuple[str, dict[str, Any]]]:
        """The statements that complete the job: the worker's own, so that its end is the same as any other's."""
        job, result = transition.job, transition.result_json
        ends: list[tuple[str, dict[str, Any]]] = [
            (
                "exchange",
                NOTHING
                | {
                    "ids": uuids([job.id]),
                    "versions": integers([job.version]),
                    "results": None if result is None else f'{{"{job.id}":{result}}}',
                    "now": now,
                },
            )
        ]
        if job.gate is not None:
            ends.append(("ungate", {"gates": texts([job.gate]), "now": now}))
        return ends

    def _landed(self) -> bool:
        """Whether a commit landed whose answer was lost; no, where the database cannot be asked.

        A no may be wrong. Then the job has moved on, and the failure that the
        worker writes because of it is fenced.
        """
        job = self._job
        asked = {"ids": uuids([job.id]), "versions": integers([job.version])}
        try:
            with psycopg.connect(self._lending.url, **OPTIONS | {"autocommit": True}) as connection:
                [row] = connection.execute(statement("readback"), asked).fetchall()
        except psycopg.Error:
            return False
        return bool(row[1] == job.version + 1 and row[2] == State.COMPLETED)

    def _uncommitted(self, error: psycopg.Error) -> StoreError:
        return StoreUnavailable(
            "the handler returned, but its transaction could not be committed, so nothing of it stays: "
            f"{explained(error, self._lending.url)}"
        )

    async def undo(self) -> None:
        if self._plain is not None:
            await asyncio.shield(asyncio.to_thread(self._undo_plain))
        connection = self._awaited
        if connection is None:
            return
        if self._loop is not asyncio.get_running_loop():
            self._awaited = None
            connection.pgconn.finish()
            return
        try:
            async with asyncio.timeout(UNDO_SECONDS):
                await connection.rollback()
        except BaseException as error:
            connection.pgconn.finish()
            if not isinstance(error, (Exception, asyncio.CancelledError)):
                raise
        finally:
            await self._give_back()

    async def _give_back(self) -> None:
        connection, self._awaited = self._awaited, None
        if connection is not None and self._lender is not None:
            await self._lender.give_back(connection)

    def _undo_plain(self) -> None:
        """Undo what is open, and let go of the connection; after a commit there is nothing to undo."""
        with self._ended:
            connection, self._plain = self._plain, None
            if connection is None:
                return
            try:
                connection.rollback()
            except Exception:
                connection.close()
            finally:
                self._lending.to_threads.give_back(connection)

    def cut(self) -> None:
        connection = self._plain or self._awaited
        if connection is None:
            return
        # The handler may be inside the driver in this moment, so the driver is left alone: only the line is cut.
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _broken(connection: Any, error: BaseException) -> bool:
    return isinstance(error, (psycopg.OperationalError, TimeoutError)) and (
        connection.closed or isinstance(error, TimeoutError)
    )
