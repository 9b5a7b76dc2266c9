"""A machine that does the same to a real store and to the memory store, and compares every answer and every row."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

import choices
from comparing import as_claimed, as_told, history_of, jobs_of
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from build import ANY, LEASE, Clock, claim
from rota._core.actions import Audit, Refusal, Verb, act
from rota._core.job import UNSTARTED, Job, NewJob, Scope, State
from rota._core.outcome import Lost, Outcome, Transition, decide
from rota._core.retry import Retry
from rota.errors import NotUnique
from rota.stores.contract import Answer, Retention, SessionStart, Settled, Store, Stored, Wanted
from rota.stores.memory import MemoryStore
from rota.stores.memory.claiming import begun, fits

T = TypeVar("T")
places = st.integers(0, 1000)


class Twins(RuleBasedStateMachine):
    """`real` is under test; `model` is the memory store. Both see one clock."""

    def __init__(self, runner: asyncio.Runner, open_real: Callable[[Clock], Awaitable[Store]]) -> None:
        super().__init__()
        self.runner = runner
        self.clock = Clock()
        self.real = runner.run(open_real(self.clock))
        self.model = MemoryStore(clock=self.clock)
        self.numbers = 0
        self.enqueued: list[NewJob] = []
        self.claims: list[Job] = []
        self.seen: list[Job] = []
        self.sessions: list[UUID] = []

    def teardown(self) -> None:
        self.same(history_of)
        self.runner.run(self.real.close())

    # How both are asked

    def same(self, ask: Callable[[Store], Awaitable[T]]) -> T:
        """Ask both; they must agree, also in what they refuse."""
        real, model = (self.runner.run(self._told(ask, store)) for store in (self.real, self.model))
        assert real == model, f"\nreal:  {real}\nmodel: {model}"
        return real

    @staticmethod
    async def _told(ask: Callable[[Store], Awaitable[Any]], store: Store) -> Any:
        try:
            return await ask(store)
        except NotUnique as refusal:
            return str(refusal)

    def new_id(self) -> UUID:
        self.numbers += 1
        return UUID(int=1 << 120 | 7 << 76 | 2 << 62 | self.numbers)

    # Producers

    @initialize()
    def begin(self) -> None:
        self.open_session(LEASE)

    @rule(batch=st.lists(choices.options, min_size=1, max_size=3))
    def enqueue(self, batch: list[dict[str, Any]]) -> None:
        jobs = [NewJob(id=self.new_id(), **options) for options in batch]
        answers = self.same(lambda store: store.enqueue(jobs))
        self.enqueued += [job for job, answer in zip(jobs, answers, strict=True) if answer.created]
        assert {answer.stored for answer in answers} <= set(Stored)

    @precondition(lambda self: self.enqueued)
    @rule(place=places)
    def enqueue_again(self, place: int) -> None:
        job = self.enqueued[place % len(self.enqueued)]
        self.same(lambda store: store.enqueue([job]))

    # Workers

    @rule(lease=st.sampled_from([LEASE, 120.0]))
    def open_session(self, lease: float) -> None:
        start = SessionStart(id=self.new_id(), host="here", pid=1, lanes={"general": 5}, tasks=("email",))
        self.same(lambda store: store.open_session(start, lease=lease))
        self.sessions.append(start.id)

    @rule(place=places)
    def claim_everything(self, place: int) -> None:
        session = self.sessions[place % len(self.sessions)]
        self.claimed(lambda store: claim(store, session))

    def claimed(self, ask: Callable[[Store], Awaitable[list[Job]]]) -> None:
        jobs: list[Job] = []

        async def ask_and_note(store: Store) -> dict[UUID, dict[str, Any]]:
            answer = await ask(store)
            jobs[:] = answer
            return as_claimed(answer)

        self.same(ask_and_note)
        self.claims += jobs

    @rule(place=places, queue=st.sampled_from(choices.QUEUES), limit=st.integers(1, 2))
    def claim_some(self, place: int, queue: str, limit: int) -> None:
        """A real store may choose among jobs of equal right; the model follows, if the choice was lawful."""
        session = self.sessions[place % len(self.sessions)]
        wanted = Wanted(limit, queues=(queue,))
        jobs = self.runner.run(claim(self.real, session, wanted))
        with self.model._step() as now:
            record = self.model._book.sessions[session]
            alive = record.ended_at is None and record.lease_until > now
            waiting = {
                job.id: job for job in self.model._book.in_state(State.PENDING) if fits(job, wanted, now)
            }
            assert {job.id for job in jobs} <= set(waiting)
            assert len(jobs) == (min(limit, len(waiting)) if alive else 0)
            begun_now = [self.model._book.put(begun(waiting[job.id], session, now)) for job in jobs]
        assert as_claimed(jobs) == as_claimed(begun_now)
        self.claims += jobs

    @precondition(lambda self: self.claims)
    @rule(
        ends=st.lists(
            st.tuples(places, choices.outcomes), min_size=1, max_size=3, unique_by=lambda end: end[0]
        ),
        retry=choices.policies,
    )
    def settle(self, ends: list[tuple[int, Outcome]], retry: Retry) -> None:
        transitions = self.decided(ends, retry)
        self.same(lambda store: store.settle(transitions))

    @precondition(lambda self: self.claims)
    @rule(
        place=places, ends=st.lists(st.tuples(places, choices.outcomes), max_size=2), retry=choices.policies
    )
    def exchange(self, place: int, ends: list[tuple[int, Outcome]], retry: Retry) -> None:
        session = self.sessions[place % len(self.sessions)]
        transitions = self.decided(ends, retry)
        settled: list[list[Settled]] = []

        async def ask(store: Store) -> list[Job]:
            answers, jobs = await store.exchange(transitions, ANY, session=session)
            settled.append(answers)
            return jobs + await claim(store, session)

        self.claimed(ask)
        assert settled[0] == settled[1]

    def decided(self, ends: list[tuple[int, Outcome]], retry: Retry) -> list[Transition]:
        """Ends of claims, old ones included; at most one for each job."""
        chosen: dict[UUID, Transition] = {}
        for place, outcome in ends:
            job = self.claims[-1 - place % len(self.claims)]
            chosen[job.id] = decide(job, outcome, retry=retry, now=self.clock.now)
        return list(chosen.values())

    @rule(place=places, lease=st.sampled_from([LEASE, 60.0]), forget=st.booleans())
    def beat(self, place: int, lease: float, forget: bool) -> None:
        session = self.sessions[place % len(self.sessions)]
        mine = [job for job in self.claims if job.session_id == session]
        holding = {job.id: job.version for job in mine[forget:]}

        async def ask(store: Store) -> tuple[Any, ...]:
            return as_told(await store.beat(session, lease=lease, holding=holding, strays=True), holding)

        self.same(ask)

    @rule(place=places)
    def end_session(self, place: int) -> None:
        self.same(lambda store: store.end_session(self.sessions[place % len(self.sessions)]))

    @rule(retry=choices.policies)
    def rescue(self, retry: Retry) -> None:
        self.same(lambda store: store.end_expired())
        lost: list[Job] = []

        async def ask(store: Store) -> dict[UUID, dict[str, Any]]:
            answer = await store.lost(limit=1000)
            lost[:] = answer
            return as_claimed(answer)

        self.same(ask)
        lost.sort(key=lambda job: job.id)
        transitions = [decide(job, Lost(), retry=retry, now=self.clock.now) for job in lost]
        answers = self.same(lambda store: store.settle(transitions))
        assert {answer.answer for answer in answers} <= {Answer.APPLIED}

    # Operators

    @precondition(lambda self: self.enqueued)
    @rule(place=places, verb=st.sampled_from(Verb), stale=st.booleans(), force=st.booleans())
    def act(self, place: int, verb: Verb, stale: bool, force: bool) -> None:
        """An operator acts on a job as it is, or as it was seen some time ago."""
        job = self.look(place, stale=stale)
        if job is None:
            return
        change = act(job, verb, retry=Retry(), now=self.clock.now, force=force, reason=f"{verb} it")
        if not isinstance(change, Refusal):
            audit = Audit("ada", verb.value, job.id, "because", before=job.state.value)
            self.same(lambda store: store.change(change, audit))

    def look(self, place: int, *, stale: bool) -> Job | None:
        if stale and self.seen:
            return self.seen[place % len(self.seen)]
        found = self.runner.run(self.real.get([self.enqueued[place % len(self.enqueued)].id]))
        self.seen += found
        return found[0] if found else None

    # Time

    @rule(seconds=choices.pauses)
    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def tidy(self) -> None:
        policy = Retention(finished=900.5, dead_after_review=900.5, sessions=900.5)

        async def ask(store: Store) -> tuple[int, ...]:
            return (await store.tidy(policy))[1:]  # finished: days in one store, jobs in the other

        self.same(ask)

    # What must always hold

    @invariant()
    def both_hold_the_same_jobs(self) -> None:
        jobs = self.same(jobs_of)
        gates = Counter(job["gate"] for job in jobs.values() if job["state"] is State.RUNNING and job["gate"])
        assert set(gates.values()) <= {1}, "two jobs run behind one gate"
        waiting = Counter(
            (job["tenant"], job["task"], job["unique_key"])
            for job in jobs.values()
            if job["unique_scope"] == Scope.STARTED and job["state"] in UNSTARTED
        )
        assert set(waiting.values()) <= {1}, "two jobs wait with one unique key"

    @invariant()
    def both_foretell_the_same(self) -> None:
        self.same(lambda store: store.next_due())
