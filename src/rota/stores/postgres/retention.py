"""Retention: policies, the archive, and the purge that moves jobs there, in paced batches and by one at a time."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID, uuid4

from psycopg import errors as pg
from psycopg.sql import SQL, Identifier

from rota._core.actions import Audit
from rota._core.failure import storable
from rota._core.job import State
from rota._core.retention import (
    ARCHIVED,
    AT_LEAST,
    EVERYTHING,
    ArchivedJob,
    Foreseen,
    Policy,
    Pruned,
    Pruning,
)
from rota.errors import StoreError
from rota.stores.postgres.operators import audited
from rota.stores.postgres.rows import uuids
from rota.stores.postgres.sqlfiles import statement
from rota.stores.retention_contract import Retention

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

BLOCKS = 128
"""Of a day's table, gone through at once: a megabyte, some thousands of jobs."""
BATCH = 2_000
REST = 5.0
"""After each batch the purge rests so many times as long as the batch took: it has a sixth of a core at most."""
LEASE = 60.0
LONG_READ = 120.0


class Day(NamedTuple):
    """A day's table of finished jobs."""

    name: str
    day: date
    over: bool
    """Whether nothing can end on it any more."""
    blocks: int


class Purge:
    """One round: what it is about, the moment that counts, and how it goes."""

    def __init__(
        self,
        wanted: Pruning,
        retention: Retention,
        now: datetime,
        policies: Sequence[Policy],
        *,
        holder: UUID | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.wanted, self.retention, self.now, self.holder = wanted, retention, now, holder
        self.progress = progress
        self.finished = self.dead = 0
        self.bound: Sequence[UUID] = ()
        """The jobs that must stay, because unfinished ones name them as their parent."""
        self.least = least(policies, retention, wanted)
        self.beaten = time.monotonic()

    def asked(self, state: str) -> dict[str, Any]:
        wanted = self.wanted
        return {
            "states": list(wanted.states) or None,
            "task": wanted.task,
            "tenant": wanted.tenant,
            "older_than": wanted.older_than,
            "keep": self.retention.of(state),
            "least": self.least,
            "now": self.now,
            "bound": uuids(self.bound),
        }

    def tell(self) -> None:
        if self.progress is not None:
            self.progress(self.finished + self.dead)


class Retained:
    """A part of the PostgreSQL store: `stores/retention_contract.py` has the promises."""

    def _pruner(self) -> Pruner:
        raise NotImplementedError

    async def policies(self) -> list[Policy]:
        return await self._pruner().policies()

    async def set_policy(self, policy: Policy, audit: Audit) -> None:
        await self._pruner().set_policy(policy, audit)

    async def remove_policy(self, policy: Policy, audit: Audit) -> bool:
        return await self._pruner().remove_policy(policy, audit)

    async def archived(self, job_ids: Sequence[UUID]) -> list[ArchivedJob]:
        return await self._pruner().archived(job_ids)

    async def foresee(self, wanted: Pruning, retention: Retention) -> list[Foreseen]:
        return await self._pruner().foresee(wanted, retention)

    async def prune(
        self, wanted: Pruning, retention: Retention, *, progress: Callable[[int], None] | None = None
    ) -> Pruned:
        return await self._pruner().prune(wanted, retention, progress)

    async def note(self, audit: Audit) -> None:
        await self._pruner().note(audit)


class Pruner:
    """The verbs about retention on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def policies(self) -> list[Policy]:
        return [Policy._make(row[:-1]) for row in await self._rows("retention_policies", {})]

    async def set_policy(self, policy: Policy, audit: Audit) -> None:
        values = policy._asdict() | {
            "set_by": storable(policy.set_by),
            "reason": None if policy.reason is None else storable(policy.reason),
            "now": self._connections.now(),
        }
        await self._told("retention_set", values, audit)

    async def remove_policy(self, policy: Policy, audit: Audit) -> bool:
        return await self._told("retention_remove", policy._asdict(), audit) > 0

    async def note(self, audit: Audit) -> None:
        await self._rows("note", audited(audit) | {"now": self._connections.now()})

    async def archived(self, job_ids: Sequence[UUID]) -> list[ArchivedJob]:
        rows = await self._rows("archived", {"ids": uuids(job_ids)}) if job_ids else []
        return [ArchivedJob._make(row)._replace(state=State(row[1])) for row in rows]

    async def foresee(self, wanted: Pruning, retention: Retention) -> list[Foreseen]:
        policies = await self._rows("retention_policies", {})
        by_id = {row[-1]: Policy._make(row[:-1]) for row in policies}
        [row] = await self._rows("moment", {"now": self._connections.now()})
        purge = Purge(wanted, retention, row[0], list(by_id.values()))
        await self._bind(purge)
        found = await self._rows("foresee_dead", purge.asked(State.DEAD))
        for day in await self._days(purge, every=True):
            found += await self._of_day("foresee_day", day, purge.asked(""))
        return _together(found, by_id)

    async def prune(
        self, wanted: Pruning, retention: Retention, progress: Callable[[int], None] | None = None
    ) -> Pruned:
        await self._rows("make_months", {"now": self._connections.now()})
        async with self._turn(wanted, retention, progress) as purge:
            if purge is None:
                return Pruned(busy=True)
            for day in await self._days(purge, every=wanted != EVERYTHING):
                if not await self._through(day, purge):
                    return Pruned(purge.finished, purge.dead, busy=True)
            if not await self._through_dead(purge):
                return Pruned(purge.finished, purge.dead, busy=True)
            return Pruned(purge.finished, purge.dead)

    async def drop_months(self, keep: float | None) -> int:
        """Let go of the months of the archive whose time is over."""
        if keep is None:
            return 0
        [row] = await self._rows("drop_months", {"keep": keep, "now": self._connections.now()})
        return int(row[0])

    async def _days(self, purge: Purge, *, every: bool) -> list[Day]:
        rows = await self._rows("prune_days", purge.asked("") | {"every": every})
        return [Day._make(row) for row in rows]

    async def _bind(self, purge: Purge) -> None:
        """Look which jobs must stay, as it is now."""
        purge.bound = [row[0] for row in await self._rows("prune_bound", purge.asked(""))]

    async def _through(self, day: Day, purge: Purge) -> bool:
        """Go through one day; False when somebody else has the turn now."""
        if purge.wanted.states and set(purge.wanted.states) == {State.DEAD}:
            return True
        await self._bind(purge)
        for first in range(0, day.blocks, BLOCKS):
            began = time.monotonic()
            places = {"first": f"({first},0)", "last": f"({first + BLOCKS},0)"}
            rows = await self._of_day("prune_day", day, purge.asked("") | places)
            if not rows:
                return True  # somebody dropped it
            purge.finished += rows[0][0]
            if not await self._rested(purge, began):
                return False
        if purge.wanted == EVERYTHING and day.over:
            await self._of_day("prune_looked", day, purge.asked("") | {"day": day.day})
        return True

    async def _through_dead(self, purge: Purge) -> bool:
        if purge.wanted.states and State.DEAD not in purge.wanted.states:
            return True
        if not await self._rows("foresee_dead", purge.asked(State.DEAD)):
            return True  # mostly; and what binds a job is found by reading all that is unfinished
        await self._bind(purge)
        while True:
            began = time.monotonic()
            [row] = await self._rows("prune_dead", purge.asked(State.DEAD) | {"limit": BATCH})
            purge.dead += row[0]
            if not await self._rested(purge, began):
                return False
            if row[0] < BATCH:
                return True

    async def _rested(self, purge: Purge, began: float) -> bool:
        """Rest after a batch; whether the turn is still ours."""
        purge.tell()
        await asyncio.sleep(REST * (time.monotonic() - began))
        if time.monotonic() - purge.beaten < LEASE / 4:
            return True
        purge.beaten = time.monotonic()
        if not await self._take_turn(purge.holder):
            return False
        await self._bind(purge)  # children may have come meanwhile
        return True

    @asynccontextmanager
    async def _turn(
        self, wanted: Pruning, retention: Retention, progress: Callable[[int], None] | None
    ) -> AsyncIterator[Purge | None]:
        """The turn to purge, which one has at a time; None: somebody else has it."""
        holder = uuid4()
        rows = await self._take_turn(holder)
        if not rows:
            yield None
            return
        try:
            policies = await self.policies()
            yield Purge(wanted, retention, rows[0][0], policies, holder=holder, progress=progress)
        finally:
            with suppress(StoreError):  # else it ends by itself
                await asyncio.shield(self._rows("prune_leave", {"holder": holder}))

    async def _take_turn(self, holder: UUID | None) -> list[tuple[Any, ...]]:
        asked = {"holder": holder, "lease": LEASE, "now": self._connections.now()}
        return await self._rows("prune_turn", asked)

    async def _of_day(self, verb: str, day: Day, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        """Ask a day's own table; nothing when somebody dropped it."""
        text = SQL(statement(verb)).format(day=Identifier(day.name))

        async def call(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
            try:
                cursor = await connection.execute(text, parameters)
            except pg.UndefinedTable:
                return []
            return await cursor.fetchall() if cursor.description else []

        return await self._connections.run(call, within=30.0, seconds=LONG_READ)

    async def _told(self, verb: str, parameters: dict[str, Any], audit: Audit) -> int:
        """Do it and record it, both or neither; how many rows it was about."""

        async def call(connection: Connection, repeated: bool) -> int:
            async with connection.transaction():
                done = (await connection.execute(statement(verb), parameters)).rowcount
                if done:
                    told = audited(audit) | {"now": self._connections.now()}
                    await connection.execute(statement("audit"), told)
                return done or int(repeated)  # nothing is left to do: it was done, and the answer lost

        return await self._connections.run(call)

    async def _rows(self, verb: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        async def call(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
            cursor = await connection.execute(statement(verb), parameters)
            return await cursor.fetchall() if cursor.description else []

        return await self._connections.run(call, within=30.0, seconds=LONG_READ)


def least(policies: Sequence[Policy], retention: Retention, wanted: Pruning = EVERYTHING) -> float:
    """The shortest time that any finished job is kept: younger days need no look."""
    if wanted.older_than is not None:
        return max(wanted.older_than, AT_LEAST)
    said = [
        policy.keep
        for policy in policies
        if policy.keep is not None and policy.state not in (ARCHIVED, State.DEAD)
    ]
    return max(min([retention.finished, *said]), AT_LEAST)


def _together(rows: Sequence[tuple[Any, ...]], policies: dict[int, Policy]) -> list[Foreseen]:
    groups: dict[tuple[int | None, str], list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        groups[row[0], row[1]].append(row)
    found = [
        Foreseen(
            None if policy is None else policies.get(policy),
            state,
            sum(row[3] for row in group if not row[2]),
            sum(row[3] for row in group if row[2]),
            min(row[4] for row in group),
            max(row[5] for row in group),
        )
        for (policy, state), group in groups.items()
    ]
    return sorted(found, key=lambda one: (one.state, one.policy is None, one.policy and one.policy.words))
