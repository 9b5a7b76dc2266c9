"""A machine that does the same to a real store and to the memory store, and compares every answer and every row."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

import choices
from comparing import as_answered, as_claimed, as_told, differences, history_of, jobs_of
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from build import ANY, LEASE, Clock, claim
from rota._core.actions import Audit, Refusal, Verb, act
from rota._core.job import UNSTARTED, Job, NewJob, Scope, State
from rota._core.outcome import Lost, Outcome, Transition, decide
from rota._core.retry import Retry
from rota.errors import NotUnique
from rota.stores.contract import Retention, SessionStart, Store, Stored, Wanted
from rota.stores.memory import MemoryStore
from rota.stores.memory.claiming import begun, fits
from rota.stores.memory.sessions import living

T = TypeVar("T")
places = st.integers(0, 1000)


class Twins(RuleBasedStateMachine):
    """`real` is under test; `model` is the memory store. Both see one clock."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, open_real: Callable[[Clock], Awaitable[Store]]
    ) -> None:
        super().__init__()
        self.run = loop.run_until_complete
        self.clock = Clock()
        self.real = self.run(open_real(self.clock))
        self.model = MemoryStore(clock=self.clock)
        self.numbers = 0
        self.enqueued: list[NewJob] = []
        self.claims: list[Job] = []
        self.seen: list[Job] = []
        self.sessions: list[UUID] = []

    def teardown(self) -> None:
        self.run(self.real.close())

    # How both are asked

    def same(self, ask: Callable[[Store], Awaitable[T]]) -> T:
        """Ask both; they must agree, also in what they refuse."""
        real, model = (self.run(self._told(ask, store)) for store in (self.real, self.model))
        assert real == model, "\n".join(["the stores differ:", *differences(real, model)])
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

    @initialize(batch=st.lists(choices.options, min_size=4, max_size=8))
    def begin(self, batch: list[dict[str, Any]]) -> None:
        """Begin with work under way: an empty store has little to disagree about."""
        self.enqueue(batch)
        self.open_session(LEASE)
        self.claim_everything(0)

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

    def open_session(self, lease: float) -> None:
        start = SessionStart(id=self.new_id(), host="here", pid=1, lanes={"general": 5}, tasks=("email",))
        self.same(lambda store: store.open_session(start, lease=lease))
        self.sessions.append(start.id)

    @rule(place=places)
    def claim_everything(self, place: int) -> None:
        self.claim(self.some_session(place), ANY)

    @rule(place=places, queue=st.sampled_from([*choices.QUEUES, choices.GATED]), limit=st.integers(1, 2))
    def claim_some(self, place: int, queue: str, limit: int) -> None:
        self.claim(self.some_session(place), Wanted(limit, queues=(queue,)))

    def claim(self, session: UUID, wanted: Wanted) -> None:
        self.run(self.real.unpark())
        self.follow(self.run(claim(self.real, session, wanted)), session, wanted)

    def follow(self, jobs: list[Job], session: UUID, wanted: Wanted) -> None:
        """A real store may choose among jobs of equal right: the model takes the same, if the choice was lawful."""
        book = self.model._book
        with self.model._step() as now:
            busy = {job.gate for job in book.in_state(State.RUNNING)}
            due = {
                job.id: job._replace(parked=None)
                for job in book.in_state(State.PENDING)
                if fits(job._replace(parked=None), wanted, now) and (job.gate is None or job.gate not in busy)
            }
            rooms = Counter(job.gate for job in due.values())
            possible = rooms.pop(None, 0) + len(rooms)  # any number without a gate, one through each gate
            assert {job.id for job in jobs} <= set(due), "a job was claimed that nobody may run now"
            alive = living(book.sessions.get(session), now)
            assert len(jobs) == (min(wanted.limit, possible) if alive else 0), (
                "too few or too many were claimed"
            )
            begun_now = [book.put(begun(due[job.id], session, now)) for job in jobs]
        assert as_claimed(jobs) == as_claimed(begun_now)
        self.claims += jobs

    def some_session(self, place: int) -> UUID:
        """Mostly the newest, which is likely to live; now and then an older one."""
        return self.sessions[-1 - (place % len(self.sessions) if place % 4 == 3 else 0)]

    @precondition(lambda self: self.claims)
    @rule(back=st.integers(0, 5), outcome=choices.outcomes, retry=choices.policies)
    def settle_lately_claimed(self, back: int, outcome: Outcome, retry: Retry) -> None:
        self.settled(self.decided([(back, outcome)], retry))

    @precondition(lambda self: self.claims)
    @rule(
        ends=st.lists(
            st.tuples(places, choices.outcomes), min_size=1, max_size=3, unique_by=lambda end: end[0]
        ),
        retry=choices.policies,
    )
    def settle(self, ends: list[tuple[int, Outcome]], retry: Retry) -> None:
        self.settled(self.decided(ends, retry))

    def settled(self, transitions: list[Transition]) -> list[tuple[Any, ...]]:
        async def ask(store: Store) -> list[tuple[Any, ...]]:
            return as_answered(await store.settle(transitions), transitions)

        return self.same(ask)

    @precondition(lambda self: self.claims)
    @rule(
        place=places, ends=st.lists(st.tuples(places, choices.outcomes), max_size=2), retry=choices.policies
    )
    def exchange(self, place: int, ends: list[tuple[int, Outcome]], retry: Retry) -> None:
        session = self.some_session(place)
        transitions = self.decided(ends, retry)
        answers, jobs = self.run(self.real.exchange(transitions, ANY, session=session))
        settled = self.run(self.model.settle(transitions))
        # What was fenced may be claimed in the same breath, so only the answers can be compared.
        real, model = ([told[:2] for told in as_answered(each, transitions)] for each in (answers, settled))
        assert real == model, "\n".join(["the stores differ:", *differences(real, model)])
        self.run(self.real.unpark())
        self.follow(jobs + self.run(claim(self.real, session)), session, ANY)

    def decided(self, ends: list[tuple[int, Outcome]], retry: Retry) -> list[Transition]:
        """Ends of claims, old ones included; at most one for each job."""
        chosen: dict[UUID, Transition] = {}
        for place, outcome in ends:
            job = self.claims[-1 - place % len(self.claims)]
            chosen[job.id] = decide(job, outcome, retry=retry, now=self.clock.now)
        return list(chosen.values())

    @rule(place=places, lease=st.sampled_from([LEASE, 60.0]), forget=st.booleans())
    def beat(self, place: int, lease: float, forget: bool) -> None:
        session = self.some_session(place)
        mine = [job for job in self.claims if job.session_id == session]
        holding = {job.id: job.version for job in mine[forget:]}

        async def ask(store: Store) -> tuple[Any, ...]:
            return as_told(await store.beat(session, lease=lease, holding=holding, strays=True), holding)

        self.same(ask)

    @rule(place=places, lease=st.sampled_from([LEASE, 120.0]))
    def restart(self, place: int, lease: float) -> None:
        """A worker ends, and another begins."""
        self.same(lambda store: store.end_session(self.some_session(place)))
        self.open_session(lease)

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
        assert {answer for _, answer, _ in self.settled(transitions)} <= {"applied"}

    # Operators

    @precondition(lambda self: self.enqueued)
    @rule(place=places, verb=st.sampled_from(Verb), force=st.booleans())
    def act(self, place: int, verb: Verb, force: bool) -> None:
        """An operator acts on a job as it is now."""
        found = self.run(self.real.get([self.enqueued[-1 - place % len(self.enqueued)].id]))
        self.seen += found
        for job in found:
            self.taken(job, verb, force=force)

    @precondition(lambda self: self.seen)
    @rule(place=places, verb=st.sampled_from(Verb))
    def act_late(self, place: int, verb: Verb) -> None:
        """An operator acts on a job as it was when the page was loaded."""
        self.taken(self.seen[-1 - place % len(self.seen)], verb)

    def taken(self, job: Job, verb: Verb, *, force: bool = False) -> None:
        change = act(job, verb, retry=Retry(), now=self.clock.now, force=force, reason=f"{verb} it")
        if not isinstance(change, Refusal):
            audit = Audit("ada", verb.value, job.id, "because", before=job.state.value)
            self.same(lambda store: store.change(change, audit))

    # Time

    @rule(seconds=choices.pauses)
    def advance(self, seconds: float) -> None:
        """Time passes; after a long time the janitor comes, and workers that are still there have beaten."""
        self.clock.advance(seconds)
        self.same(history_of)
        self.same(lambda store: store.next_due(choices.QUEUES))
        if seconds > 500:
            self.tidy()
            self.open_session(LEASE)

    def tidy(self) -> None:
        policy = Retention(finished=900.5, dead_after_review=900.5, sessions=900.5)

        async def ask(store: Store) -> tuple[int, ...]:
            tidied = await store.tidy(policy)  # how finished jobs and keys are counted is each store's own
            return tidied.dead, tidied.sessions

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
