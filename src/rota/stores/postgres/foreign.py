"""`tx=`: store jobs on a connection of the caller's, so that they commit or roll back with the caller's own work.

One statement, on the caller's thread. Before the first one on an address a
second asks where it leads: a job in another database would wait for ever.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Generator, Hashable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import psycopg

from rota._core.job import NewJob
from rota.errors import PermissionMissing, SchemaOutdated, StoreError, TransactionUnusable
from rota.stores.contract import Enqueued, Stored
from rota.stores.postgres import encoding
from rota.stores.postgres.address import Address
from rota.stores.postgres.faults import address, explained
from rota.stores.postgres.foreign_drivers import (
    AWAITED,
    AsyncDriver,
    Django,
    Driver,
    Rows,
    Values,
    recognised,
)
from rota.stores.postgres.migrate import LATEST
from rota.stores.postgres.sqlfiles import statement

log = logging.getLogger("rota.enqueue")

LOOK_AGAIN = 60.0
"""Seconds until our own database is asked again who it is, if it did not answer."""
LOOK: dict[str, Any] = {
    "autocommit": True,
    "prepare_threshold": None,
    "connect_timeout": 5,
    "application_name": "rota",
}


class Whereabouts(NamedTuple):
    """The row of whereabouts.sql."""

    name: str
    role: str
    identity: str
    may_be_asked: bool
    has_schema: bool
    may_store: bool


class Ask(NamedTuple):
    """One statement that the flow below wants: on the caller's connection, or on one of our own."""

    verb: str
    values: Values
    ours: bool = False


Flow: TypeAlias = "Generator[Ask, Rows, list[Enqueued]]"


class Foreign:
    """What one store knows of its callers' connections."""

    def __init__(self, server: Address, clock: Callable[[], datetime] | None) -> None:
        self._server, self._clock = server, clock
        self._fit: set[Hashable] = set()
        """Addresses that were found to lead to our own database."""
        self._home: Whereabouts | None = None
        self._look_at = float("-inf")

    def enqueue_within(self, tx: Any, jobs: Sequence[NewJob]) -> list[Enqueued] | Awaitable[list[Enqueued]]:
        """Store jobs through `tx`; the answers, or an awaitable of them where `tx` is asynchronous."""
        driver = recognised(tx)
        if isinstance(driver, Django) and driver.elsewhere:
            return driver.away(lambda: self._at_once(driver, jobs))
        if isinstance(driver, AWAITED):
            return self._awaited(driver, jobs)
        return self._at_once(driver, jobs)

    # The same flow of statements, done at once or awaited.

    def _at_once(self, driver: Driver, jobs: Sequence[NewJob]) -> list[Enqueued]:
        flow = self._flow(driver.look(), jobs)
        try:
            ask = next(flow)
            while True:
                ask = flow.send(self._at_home(ask) if ask.ours else driver.fetch(ask.verb, ask.values))
        except StopIteration as end:
            return list(end.value)

    async def _awaited(self, driver: AsyncDriver, jobs: Sequence[NewJob]) -> list[Enqueued]:
        await driver.ready()
        flow = self._flow(driver.look(), jobs)
        try:
            ask = next(flow)
            while True:
                if ask.ours:
                    rows = await self._awaited_at_home(ask)
                else:
                    rows = await driver.fetch(ask.verb, ask.values)
                ask = flow.send(rows)
        except StopIteration as end:
            return list(end.value)

    def _flow(self, where: Hashable, jobs: Sequence[NewJob]) -> Flow:
        if where is None or where not in self._fit:
            yield from self._check(where)
        now = None if self._clock is None else self._clock().isoformat()
        return _answers((yield Ask("enqueue_within", {"jobs": encoding.as_json(jobs), "now": now})))

    # Whether it leads to our own database

    def _check(self, where: Hashable) -> Generator[Ask, Rows, None]:
        """Refuse a connection on which the job would be lost, or the statement fail and abort the transaction."""
        if self._home is None:
            yield from self._look_home()
        if self._home is None or not self._home.may_be_asked:
            return
        there = Whereabouts(*(yield Ask("whereabouts", {}))[0])
        if there.identity != self._home.identity:
            yield from self._look_home()  # ours may have moved: dropped and made anew, or restored
        if self._home is None:
            return
        if there.identity != self._home.identity:
            raise TransactionUnusable(
                f"tx= leads to database {there.name!r}, and the jobs of this app are in {address(self._server.url)}: "
                "no worker would find the job there. Nothing was stored. Point ROTA_URL at the database of your "
                "transaction, or enqueue after your commit, without tx=."
            )
        if not there.has_schema:
            raise SchemaOutdated(None, LATEST)
        if not there.may_store:
            raise PermissionMissing(
                f"tx= leads to database {there.name!r} as role {there.role!r}, which may not store jobs. Nothing was "
                f"stored. Let the owner of schema rota give it its rights (SELECT rota.grant_to('{there.role}')), or "
                "use another role."
            )
        if where is not None:
            self._fit.add(where)

    def _look_home(self) -> Generator[Ask, Rows, None]:
        if time.monotonic() >= self._look_at:
            self._look_at = float("-inf")
            rows = yield Ask("whereabouts", {}, ours=True)
            if rows:
                self._home = Whereabouts(*rows[0])
            else:
                self._look_at = time.monotonic() + LOOK_AGAIN

    def _at_home(self, ask: Ask) -> Rows:
        try:
            with psycopg.connect(self._server.url, **LOOK) as connection:
                return connection.execute(statement(ask.verb)).fetchall()
        except (psycopg.Error, OSError) as error:
            return self._unknown(explained(error, self._server.url))

    async def _awaited_at_home(self, ask: Ask) -> Rows:
        try:
            async with await psycopg.AsyncConnection.connect(self._server.url, **LOOK) as connection:
                return await (await connection.execute(statement(ask.verb))).fetchall()
        except (psycopg.Error, OSError) as error:
            return self._unknown(explained(error, self._server.url))

    @staticmethod
    def _unknown(error: StoreError) -> Rows:
        """The caller's connection works, and ours does not: that must not cost the caller the job."""
        log.warning("whether tx= leads to the database of the jobs could not be checked: %s", error)
        return []


def _answers(rows: Rows) -> list[Enqueued]:
    """Rows of three columns; drivers differ in what they make of an id."""
    found = [(place, id_ if isinstance(id_, UUID) else UUID(str(id_)), stored) for place, id_, stored in rows]
    return [Enqueued(id_, Stored(stored)) for _, id_, stored in sorted(found)]
