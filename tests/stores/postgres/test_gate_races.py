"""Parking against ungating, with both sides held still: no job may be left at a gate that nobody is in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from build import ANY, a_job, a_session, applied, by_hand, claim, completed, failed, read
from rota._core.actions import Verb
from rota._core.job import State
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.sqlfiles import statement


class Interrupted:
    """A connection on which something happens right after one statement, before anything else is sent."""

    def __init__(self, connection: Any, verb: str, meanwhile: Callable[[], Awaitable[Any]]) -> None:
        self._connection, self._verb, self._meanwhile = connection, verb, meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def ask(self, verb: str, values: Any) -> Any:
        answer = await self._connection.ask(verb, values)
        if verb == self._verb:
            await self._meanwhile()
        return answer


@pytest.fixture
async def other(fresh_database):
    """Another worker's store."""
    store = PostgresStore(fresh_database)
    yield store
    await store.close()


@pytest.fixture
async def inside(store):
    """A job inside its gate; the next one waits before it."""
    job, following = a_job(gate="account:1"), a_job(gate="account:1")
    await store.enqueue([job])
    [running] = await claim(store)
    await store.enqueue([following])
    return running, following


async def claimed_by(other: PostgresStore, verb: str, meanwhile: Callable[[], Awaitable[Any]]) -> list[Any]:
    """A claim of gated jobs by another worker, in the middle of which something happens."""
    session = await a_session(other)
    desk = other._desks()
    await desk.claims.next_due(None)
    async with desk.connections.connection() as connection:
        return await desk.claims.claim_gated(Interrupted(connection, verb, meanwhile), ANY, session, 7, 0)


async def parked(store: PostgresStore, job: Any) -> str | None:
    async with store._desks().connections.connection() as connection:
        row = await (
            await connection.execute("SELECT parked FROM rota.jobs WHERE id = %s", [job.id])
        ).fetchone()
        return row[0]


@pytest.mark.req("W10")
@pytest.mark.parametrize("end", [completed, failed], ids=["completed", "failed"])
async def test_a_job_that_is_parked_while_the_one_inside_leaves_is_called_all_the_same(
    store, other, inside, end
):
    """The leaver's look at the gate passes over the next job, which the claim holds; the claim must look again."""
    running, following = inside

    async def leave() -> None:
        assert (await store.settle([end(running)]))[0].answer == "applied"

    assert await claimed_by(other, "claim_gated", leave) == []
    assert await parked(store, following) is None
    assert following.id in {job.id for job in await claim(store)}


async def test_a_job_that_leaves_between_the_two_halves_of_a_claim_is_not_seen_inside(store, other, inside):
    running, following = inside

    async def leave() -> None:
        await store.settle([completed(running)])

    [claimed] = await claimed_by(other, "gate_candidates", leave)

    assert claimed.id == following.id


async def test_a_claim_that_parks_a_job_leaves_it_parked_while_somebody_is_inside(store, other, inside):
    running, following = inside

    async def nothing() -> None: ...

    assert await claimed_by(other, "claim_gated", nothing) == []
    assert await parked(store, following) == "gate"
    assert await store.settle([completed(running)]) == [applied(running, State.COMPLETED)]
    assert await parked(store, following) is None


async def test_the_one_that_leaves_calls_a_job_that_was_parked_before_it_had_committed(
    store, side, other, inside
):
    """Its own look at the gate comes after its commit, so it sees what a claim parked until then."""
    running, following = inside
    await side.execute("DELETE FROM rota.jobs WHERE id = %s", [running.id])  # the leaver, before its commit

    async def nothing() -> None: ...

    assert await claimed_by(other, "claim_gated", nothing) == []
    await side.commit()
    assert await parked(store, following) == "gate"
    await side.execute(statement("ungate"), {"gates": ["account:1"], "now": None})  # and after it

    assert [job.id for job in await claim(store)] == [following.id]


@pytest.mark.parametrize("verb", [Verb.CANCEL, Verb.KILL])
async def test_an_operator_who_takes_a_job_out_of_its_gate_leaves_nobody_behind(store, other, inside, verb):
    """A claim that still sees the job inside parks the next one before the operator's transaction commits."""
    running, following = inside
    operators = store._desks().operators
    record = operators._record

    async def nothing() -> None: ...

    async def slowly(connection: Any, audit: Any) -> None:
        assert await claimed_by(other, "claim_gated", nothing) == []
        await record(connection, audit)

    operators._record = slowly
    await by_hand(store, await read(store, running), verb, force=True)

    assert await parked(store, following) is None
    assert [job.id for job in await claim(store)] == [following.id]


async def test_two_looks_at_one_gate_call_one_job(store, side, other, inside):
    """The unparker and a leaver at the same time: the second passes over the job that the first is calling."""
    running, following = inside
    third = a_job(gate="account:1")
    await store.enqueue([third])

    async def nothing() -> None: ...

    await claimed_by(other, "claim_gated", nothing)
    async with store._desks().connections.connection() as connection:
        await connection.execute(
            "DELETE FROM rota.jobs WHERE id = %s", [running.id]
        )  # it left, and crashed then
    await side.execute(statement("ungate"), {"gates": ["account:1"], "now": None})
    await store.unpark()
    await side.commit()

    jobs = await claim(store)
    assert [job.id for job in jobs] in ([following.id], [third.id])
