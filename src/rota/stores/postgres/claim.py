"""Claim: which (queue, priority) pairs to look at, from where on, and whether to look at all."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import UUID

from rota._core.job import Job
from rota.stores.contract import Wanted
from rota.stores.postgres.rows import claimed, integers, texts, uuids

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

Pair: TypeAlias = "tuple[str, int]"

BEGINNING = datetime(1, 1, 1, tzinfo=UTC).isoformat()
NIL = UUID(int=0)
LOOK_EVERY = 1.0
"""After so many seconds of claiming, look again from the beginning: there may be other pairs."""
FLOOR_SECONDS = 0.25
"""The same while there are floors: there may be jobs below them."""
SHARE = 0.05
"""At most this share of the time goes into looking."""
CHEAP = 0.005
"""A look of so many seconds has met few dead entries: then floors are not worth keeping."""


class Plan(NamedTuple):
    """One claim as it will be sent."""

    wanted: Wanted
    session: UUID
    pairs: list[Pair]
    parameters: dict[str, Any]
    event: int
    """The number of the last hint that was heard before it."""


class Claims:
    """What one event loop knows of waiting work. All of it is a hint: the claim itself decides."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._plain: dict[Pair, int] = {}
        self._gated: dict[Pair, int] = {}
        self._events = 0
        self._floors: dict[Pair, tuple[str, UUID]] = {}
        self._look_at = float("-inf")
        self._look_took = 0.0
        self._turn = 0
        self._claim_no = random.randrange(1_000_000)  # noqa: S311 - only to tell claims apart

    def _tick(self) -> float:
        moved = self._connections.now()
        return moved.timestamp() if moved else time.monotonic()

    def next_no(self) -> int:
        """A number for one claim, by which its jobs are found again if its answer is lost."""
        self._claim_no = (self._claim_no + 1) % 2_000_000_000
        return self._claim_no

    def hint(self, queue: str, priority: int, *, gated: bool) -> None:
        """Somebody said that there is work."""
        self._events += 1
        (self._gated if gated else self._plain)[queue, priority] = self._events

    async def next_due(self, queues: tuple[str, ...] | None) -> float | None:
        """Look for pairs, and say how long until the first job of these queues is due."""
        rows = await self._connections.run(lambda connection, _: self._look(connection))
        waits = [row[2] for row in rows if queues is None or row[0] in queues]
        return max(0.0, min(waits)) if waits else None

    async def _look(self, connection: Connection) -> list[tuple[Any, ...]]:
        """Look from the beginning: which pairs wait, and where each begins. The next claims begin there."""
        began, event = self._tick(), self._events
        self._look_at = began + LOOK_EVERY  # one at a time looks
        rows = await connection.ask("pairs", {"now": self._connections.now()})
        now = self._tick()
        self._look_took = now - began
        self._drop_floors()
        for known, gated in ((self._plain, False), (self._gated, True)):
            _forget(known, list(known), event)  # what was hinted at meanwhile stays
            for queue, priority, wait, is_gated, run_at, id_ in rows:
                if is_gated is gated and wait <= 0:
                    known.setdefault((queue, priority), event)
                if wait <= 0 and not is_gated:
                    self._floors[queue, priority] = (run_at.isoformat(), UUID(int=max(id_.int - 1, 0)))
        pause = FLOOR_SECONDS if self._floors else LOOK_EVERY
        self._look_at = now + max(pause, self._look_took / SHARE)
        return rows

    def _drop_floors(self) -> None:
        """Begin at the beginning again, unless that means to walk over many dead entries.

        A floor that is kept too long hides a job for a moment only: a claim that finds nothing looks.
        """
        if self._look_took < CHEAP:
            self._floors.clear()

    async def refresh(self, connection: Connection) -> None:
        # A job that was just hinted at, with no floor in its way, is claimed without a look before it.
        if self._tick() >= self._look_at and (self._floors or not self._plain):
            await self._look(connection)

    def plan(self, wanted: Wanted, session: UUID, claim_no: int) -> Plan | None:
        """The next claim, or None when nothing is known to wait for it."""
        pairs = self._pairs(wanted)
        if not pairs or wanted.limit <= 0:
            return None
        floors = [self._floors.get(pair, (BEGINNING, NIL)) for pair in pairs]
        parameters = {
            **self._common(pairs, wanted),
            "floors": texts(at for at, _ in floors),
            "floor_ids": uuids(id_ for _, id_ in floors),
            "limit": wanted.limit,
            "session": session,
            "claim_no": claim_no,
        }
        return Plan(wanted, session, pairs, parameters, self._events)

    def _pairs(self, wanted: Wanted) -> list[Pair]:
        """The pairs to claim from, most urgent first; those of one priority take turns."""
        fitting = [pair for pair in self._plain if wanted.queues is None or pair[0] in wanted.queues]
        if len(fitting) > 1:
            self._turn += 1
            fitting.sort()
            turn = self._turn % len(fitting)
            fitting = fitting[turn:] + fitting[:turn]
            fitting.sort(key=lambda pair: pair[1])
        return fitting

    def received(self, plan: Plan, rows: Sequence[tuple[Any, ...]]) -> list[Job]:
        """Turn rows into jobs (they come most urgent first), and raise the floors behind them."""
        jobs = [claimed(row, plan.session) for row in rows]
        if len(jobs) < plan.wanted.limit:
            # Everything due was taken: wait for a hint or a look.
            self._drop_floors()
            _forget(self._plain, plan.pairs, plan.event)
        if len(jobs) == plan.wanted.limit:
            last = {(job.queue, job.priority): job for job in jobs}
            self._floors |= {pair: (job.run_at.isoformat(), job.id) for pair, job in last.items()}
        return jobs

    async def claim(self, connection: Connection, wanted: Wanted, session: UUID, claim_no: int) -> list[Job]:
        """One claim on `connection`. One that finds nothing looks once for work that nobody hinted at."""
        jobs = await self._claim_known(connection, wanted, session, claim_no)
        if not jobs and wanted.limit > 0:
            await self._look(connection)
            jobs = await self._claim_known(connection, wanted, session, claim_no)
        return jobs

    async def _claim_known(
        self, connection: Connection, wanted: Wanted, session: UUID, claim_no: int
    ) -> list[Job]:
        """The plain jobs first, then, with what room is left, the gated ones."""
        jobs: list[Job] = []
        plan = self.plan(wanted, session, claim_no)
        if plan is not None:
            rows = await connection.ask("claim", plan.parameters)
            if len(rows) > 1:
                rows.sort(key=_urgency)
            jobs = self.received(plan, rows)
        return jobs + await self.claim_gated(connection, wanted, session, claim_no, len(jobs))

    async def claim_gated(
        self, connection: Connection, wanted: Wanted, session: UUID, claim_no: int, have: int
    ) -> list[Job]:
        """Claim jobs behind gates: lock gates without waiting, then count and claim in a new statement."""
        fitting = [pair for pair in self._gated if wanted.queues is None or pair[0] in wanted.queues]
        pairs = sorted(fitting, key=lambda pair: pair[1])
        if not pairs or have >= wanted.limit:
            return []
        event = self._events
        async with connection.transaction():
            found = await connection.ask("gate_candidates", self._common(pairs, wanted))
            if not found:
                _forget(self._gated, pairs, event)
                return []
            parameters = {
                "ids": uuids(row[0] for row in found),
                "limit": wanted.limit - have,
                "session": session,
                "claim_no": claim_no,
                "now": self._connections.now(),
            }
            rows = await connection.ask("claim_gated", parameters)
        jobs = [claimed(row, session) for row in rows]
        if len(jobs) < len(found):
            # Some were parked behind a job that may have left its gate while we held them: then nobody calls them.
            gates = texts({gate for _, gate in found} - {job.gate or "" for job in jobs})
            await connection.ask("ungate", {"gates": gates, "now": self._connections.now()})
        return jobs

    async def recover(self, connection: Connection, session: UUID, claim_no: int) -> list[Job]:
        """What a claim got whose answer was lost."""
        rows = await connection.ask("recover_claim", {"session": session, "claim_no": claim_no})
        return [claimed(row, session) for row in rows]

    def _common(self, pairs: list[Pair], wanted: Wanted) -> dict[str, Any]:
        return {
            "queues": texts(queue for queue, _ in pairs),
            "priorities": integers([priority for _, priority in pairs]),
            "tasks": None if wanted.tasks is None else texts(wanted.tasks),
            "tenant": wanted.tenant,
            "now": self._connections.now(),
        }


def _urgency(row: tuple[Any, ...]) -> tuple[int, datetime, int]:
    """By priority, then due time, then id, of a claim's columns."""
    return row[4], row[10], row[0].int


def _forget(known: dict[Pair, int], pairs: list[Pair], event: int) -> None:
    """Drop pairs that found nothing, unless somebody hinted at them since."""
    for pair in pairs:
        if known.get(pair, event) <= event:
            known.pop(pair, None)
