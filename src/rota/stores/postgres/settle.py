"""Settle: apply transitions behind the fence, and find out what became of those that did not land."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg

from rota._core.failure import ErrorClass, Failure
from rota._core.job import Job, State
from rota._core.outcome import Transition
from rota.stores.contract import Answer, Settled, Wanted
from rota.stores.postgres.claim import Claims
from rota.stores.postgres.connections import REPEAT_SECONDS
from rota.stores.postgres.faults import missing_day
from rota.stores.postgres.keyring import Keyring
from rota.stores.postgres.rows import integers, texts, uuids
from rota.stores.postgres.transitions import all_plain, row_of, sorted_out, verb_of, wants_key

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

NOTHING: dict[str, Any] = {"queues": "{}", "priorities": "{}", "floors": "{}", "floor_ids": "{}", "tasks": None,
                           "tenant": None, "limit": 0, "session": None, "claim_no": None}  # fmt: skip

_new = tuple.__new__

PATIENCE = 0.1
"""Seconds that a batch waits for unique keys which somebody holds right now."""


class Settler:
    """The settles of one event loop, fused with its claims where both are plain."""

    def __init__(self, connections: Connections, claims: Claims) -> None:
        self._connections = connections
        self._claims = claims
        self.keys = Keyring(connections)

    async def settle(self, transitions: Sequence[Transition]) -> list[Settled]:
        return (await self._exchange(transitions, None, None))[0]

    async def claim(self, wanted: Wanted, session: UUID) -> list[Job]:
        return (await self._exchange((), wanted, session))[1]

    async def exchange(
        self, transitions: Sequence[Transition], wanted: Wanted, session: UUID
    ) -> tuple[list[Settled], list[Job]]:
        return await self._exchange(transitions, wanted, session)

    async def _exchange(
        self, transitions: Sequence[Transition], wanted: Wanted | None, session: UUID | None
    ) -> tuple[list[Settled], list[Job]]:
        claim_no = self._claims.next_no()
        answers: dict[int, Settled] = {}

        claim = None if wanted is None or session is None else (wanted, session, claim_no)

        async def call(connection: Connection, repeated: bool) -> list[Job]:
            if claim and repeated:
                jobs = await self._claims.recover(connection, claim[1], claim_no)
                if jobs:
                    jobs += await self._round(connection, transitions, None, answers)
                    await self._retakes(connection, transitions, answers)
                    return jobs
            jobs = await self._round(connection, transitions, claim, answers)
            if len(answers) < len(transitions):
                await self._retakes(connection, transitions, answers)
            return jobs

        jobs = await self._connections.run(call, within=0.5 if wanted is not None else REPEAT_SECONDS)
        return [answers[place] for place in range(len(transitions))], jobs

    async def _round(
        self,
        connection: Connection,
        transitions: Sequence[Transition],
        claim: tuple[Wanted, UUID, int] | None,
        answers: dict[int, Settled],
    ) -> list[Job]:
        plain = [] if answers else all_plain(transitions)
        if not plain:
            plain, special, twice = sorted_out(transitions, answers)
            await self._special(connection, transitions, special, answers)
            if twice:
                first: dict[int, Settled] = {}
                await self._round(connection, [transitions[place] for place in plain], None, first)
                answers |= {plain[place]: answer for place, answer in first.items()}
                return await self._round(connection, transitions, claim, answers)
        if claim:
            await self._claims.refresh(connection)
        if not plain:
            return await self._claims.claim(connection, *claim) if claim else []
        plan = self._claims.plan(*claim) if claim else None
        refused: set[UUID] = set()
        claimed = plan.parameters if plan else NOTHING
        rows = await self._complete(connection, transitions, plain, claimed, refused)
        stale = {row[0] for row in rows if row[1] < 0}
        jobs = (
            self._claims.received(plan, [row for row in rows if row[1] >= 0] if stale else rows)
            if plan
            else []
        )
        await self._answer(connection, transitions, plain, stale, answers)
        for place in plain if refused else ():
            if transitions[place].job.id in refused:
                answers[place] = answers[place]._replace(state=State.DEAD)
        await self._ungate(connection, transitions, plain, answers)
        return jobs + await self._claims.claim_gated(connection, *claim, len(jobs)) if claim else jobs

    async def _complete(
        self,
        connection: Connection,
        transitions: Sequence[Transition],
        places: list[int],
        claim: dict[str, Any],
        refused: set[UUID],
    ) -> list[tuple[Any, ...]]:
        """Complete these and claim the next in one statement. A result that cannot be stored is found by halving."""
        jobs = [transitions[place].job for place in places]
        results = ",".join(
            f'"{transitions[place].job.id}":{transitions[place].result_json}'
            for place in places
            if transitions[place].result_json is not None
        )
        parameters = claim | {
            "ids": uuids(job.id for job in jobs),
            "versions": integers([job.version for job in jobs]),
            "results": "{" + results + "}" if results else None,
            "now": self._connections.now(),
        }
        try:
            return await connection.ask("exchange", parameters)
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            if missing_day(error):
                raise
            if len(places) == 1:
                refused.add(transitions[places[0]].job.id)
                return await self._unstorable(connection, transitions[places[0]], error)
            half = len(places) // 2
            rows = await self._complete(connection, transitions, places[:half], NOTHING, refused)
            return rows + await self._complete(connection, transitions, places[half:], claim, refused)

    async def _unstorable(
        self, connection: Connection, transition: Transition, error: psycopg.Error
    ) -> list[tuple[Any, ...]]:
        """Its result is the one that PostgreSQL refuses: the job is dead with the reason, its neighbours are not."""
        reason = " ".join(str(error).split())
        failure = Failure.because(ErrorClass.NON_RETRYABLE, f"its result could not be stored: {reason}")
        dead = Transition(transition.job, State.DEAD, "die", failure=failure)
        landed = await self._apply(connection, "settle_dead", [dead])
        return [] if landed else [(transition.job.id, -transition.job.version)]

    async def _special(
        self,
        connection: Connection,
        transitions: Sequence[Transition],
        places: list[int],
        answers: dict[int, Settled],
    ) -> None:
        """Everything but plain completions, one statement a kind; what must take its key again goes one by one."""
        kinds: dict[str, list[int]] = {}
        for place in places:
            transition = transitions[place]
            if wants_key(transition):
                answers[place] = await self._retake(connection, transition)
            else:
                kinds.setdefault(verb_of(transition), []).append(place)
        for verb, group in kinds.items():
            await self._group(connection, verb, transitions, group, answers)
            if verb == "settle_waiting":
                self._hint(transitions[place].job for place in group)
        if places:
            await self._ungate(connection, transitions, places, answers)

    async def _group(
        self,
        connection: Connection,
        verb: str,
        transitions: Sequence[Transition],
        group: list[int],
        answers: dict[int, Settled],
    ) -> None:
        """One statement for one kind; what PostgreSQL refuses is found by halving, as in `_complete`."""
        try:
            landed = await self._apply(connection, verb, [transitions[place] for place in group])
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            if missing_day(error):
                raise
            if len(group) == 1:
                stale = {row[0] for row in await self._unstorable(connection, transitions[group[0]], error)}
                await self._answer(connection, transitions, group, stale, answers)
                if not stale:
                    answers[group[0]] = answers[group[0]]._replace(state=State.DEAD)
                return
            half = len(group) // 2
            await self._group(connection, verb, transitions, group[:half], answers)
            await self._group(connection, verb, transitions, group[half:], answers)
        else:
            stale = {transitions[place].job.id for place in group} - landed
            await self._answer(connection, transitions, group, stale, answers)

    def _hint(self, jobs: Iterable[Job]) -> None:
        """Our own event loop need not hear from the database what it did itself."""
        for job in jobs:
            self._claims.hint(job.queue, job.priority, gated=job.gate is not None)

    async def _apply(self, connection: Connection, verb: str, transitions: Sequence[Transition]) -> set[UUID]:
        """Send one kind of transitions; the ids that landed."""
        parameters = {
            "rows": "[" + ",".join(map(row_of, transitions)) + "]",
            "ids": uuids(transition.job.id for transition in transitions),
            "versions": integers([transition.job.version for transition in transitions]),
            "now": self._connections.now(),
        }
        return {row[0] for row in await connection.ask(verb, parameters)}

    async def _retakes(
        self, connection: Connection, transitions: Sequence[Transition], answers: dict[int, Settled]
    ) -> None:
        """What must win its unique key again: last of all, and with little patience.

        An open transaction of somebody (tx=) may hold the key for as long as it
        likes. That must cost neither the other ends nor the next jobs their time.
        """
        places = [place for place in range(len(transitions)) if place not in answers]
        until = time.monotonic() + PATIENCE
        for place in places:
            try:
                left = until - time.monotonic()
                answers[place] = await self._retake(connection, transitions[place], left)
            except psycopg.errors.LockNotAvailable:
                job = transitions[place].job
                answers[place] = Settled(job.id, Answer.BUSY, job.state)
        await self._ungate(connection, transitions, places, answers)

    async def _retake(
        self, connection: Connection, transition: Transition, patience: float | None = None
    ) -> Settled:
        """Back to waiting with a unique key: only if no newer job has taken the key meanwhile."""
        job = transition.job
        async with connection.transaction():
            if patience is not None:
                await self.keys.hurry(connection, patience)
            holder = await self.keys.rival(connection, job)
            if holder is None:
                await self.keys.take_key(connection, job)
                landed = await self._apply(connection, "settle_waiting", [transition])
            else:
                transition = transition._replace(
                    to=State.CANCELLED,
                    verb="supersede",
                    reason="superseded",
                    changes={"superseded_by": str(holder)},
                )
                landed = await self._apply(connection, "settle_ended", [transition])
        answers: dict[int, Settled] = {}
        await self._answer(connection, [transition], [0], set() if landed else {job.id}, answers)
        return answers[0]

    async def _answer(
        self,
        connection: Connection,
        transitions: Sequence[Transition],
        places: list[int],
        stale: set[UUID],
        answers: dict[int, Settled],
    ) -> None:
        """Note what landed; read back the rest: `already` if this very claim was settled so before, else `fenced`."""
        landed = Answer.APPLIED
        for place in places:
            transition = transitions[place]
            # The same as Settled(...), at half its price: a worker does this for every job.
            answers[place] = _new(Settled, (transition.job.id, landed, transition.to))
        missed = [place for place in places if transitions[place].job.id in stale] if stale else ()
        if not missed:
            return
        parameters = {
            "ids": uuids(transitions[place].job.id for place in missed),
            "versions": integers([transitions[place].job.version for place in missed]),
        }
        found = {row[0]: row[1:] for row in await connection.ask("readback", parameters)}
        for place in missed:
            transition = transitions[place]
            version, state, noted = found[transition.job.id]
            expected = transition.failure.error_class if transition.failure else None
            same = version == transition.job.version + 1 and noted == expected and state == transition.to
            answers[place] = Settled(
                transition.job.id, Answer.ALREADY if same else Answer.FENCED, State(state) if state else None
            )

    async def _ungate(
        self,
        connection: Connection,
        transitions: Sequence[Transition],
        places: list[int],
        answers: dict[int, Settled],
    ) -> None:
        """Let the next job through each gate that was left."""
        gated = [place for place in places if transitions[place].job.gate is not None]
        left = {
            transitions[place].job.gate or "" for place in gated if answers[place].answer is Answer.APPLIED
        }
        if left:
            await connection.ask("ungate", {"gates": texts(sorted(left)), "now": self._connections.now()})
            self._hint(transitions[place].job for place in gated)

    async def change(self, connection: Connection, transition: Transition) -> Settled:
        """One transition inside a caller's transaction (an operator's)."""
        answers: dict[int, Settled] = {}
        await self._special(connection, [transition], [0], answers)
        self._hint([transition.job])
        return answers[0]
