"""What a worker tells of its memory with its beats, and the orders that people leave for it."""

from __future__ import annotations

from uuid import UUID

import pytest

from build import LEASE, Clock, a_session, new_id
from rota._core.actions import Audit
from rota._core.worker_order import OrderVerb, WorkerOrder, about
from rota.stores.contract import Beat, SessionRecord, SessionStart, Store

DRAIN, STOP = OrderVerb.DRAIN, OrderVerb.STOP


async def hearing(store: Store, *, memory: int | None = None) -> UUID:
    """A living session of a worker that hears orders."""
    start = SessionStart(new_id(), "here", 1, {"general": 5}, ("email",), memory=memory, hears=True)
    await store.open_session(start, lease=LEASE)
    return start.id


def an_audit(session: UUID, verb: OrderVerb, actor: str = "ann", reason: str | None = "deploy") -> Audit:
    return Audit(actor, verb.value, None, reason, about=about(session))


async def order(store: Store, session: UUID, verb: OrderVerb, **more) -> bool:
    return await store.order_worker(session, verb, an_audit(session, verb, **more))


async def record(store: Store, session: UUID) -> SessionRecord:
    return next(found for found in await store.sessions() if found.id == session)


async def trail(store: Store, session: UUID) -> list[tuple[str, str, str | None]]:
    return [(row.actor, row.action, row.reason) for row in await store.audit(about=about(session))]


async def test_memory_is_what_the_last_beat_that_knew_it_said(store: Store):
    session = await hearing(store, memory=50_000_000)
    assert (await record(store, session)).memory == 50_000_000

    await store.beat(session, lease=LEASE, holding={}, memory=5_000_000_000)
    await store.beat(session, lease=LEASE, holding={})

    assert (await record(store, session)).memory == 5_000_000_000


async def test_memory_that_was_never_told_is_unknown_and_not_zero(store: Store):
    session = await a_session(store)
    await store.beat(session, lease=LEASE, holding={})

    assert (await record(store, session)).memory is None


async def test_an_order_is_kept_with_who_when_and_why_and_told_by_every_beat(store: Store, clock: Clock):
    session = await hearing(store)
    assert (await store.beat(session, lease=LEASE, holding={})).order is None
    clock.advance(3)
    asked_at = clock.now

    assert await order(store, session, DRAIN)

    clock.advance(2)
    for _ in range(2):
        assert await store.beat(session, lease=LEASE, holding={}) == Beat(True, order=DRAIN)
    assert (await record(store, session)).order == WorkerOrder(DRAIN, "ann", asked_at, "deploy")
    assert await trail(store, session) == [("ann", "drain", "deploy")]


async def test_an_order_is_for_one_session_only(store: Store):
    session, other = await hearing(store), await hearing(store)
    await order(store, session, STOP)

    assert (await store.beat(other, lease=LEASE, holding={})).order is None
    assert (await record(store, other)).order is None


async def test_an_order_does_not_end_the_session(store: Store):
    session = await hearing(store)
    await order(store, session, STOP)

    assert (await store.beat(session, lease=LEASE, holding={})).alive
    assert (await record(store, session)).ended_at is None


@pytest.mark.parametrize(
    ("standing", "verb", "left"),
    [(DRAIN, DRAIN, False), (DRAIN, STOP, True), (STOP, DRAIN, False), (STOP, STOP, False)],
)
async def test_only_a_stop_replaces_what_was_asked_before(store: Store, standing, verb, left):
    session = await hearing(store)
    await order(store, session, standing)

    assert await order(store, session, verb, actor="bob", reason="hurry") is left

    found = (await record(store, session)).order
    assert found is not None
    assert (found.verb, found.by) == ((verb, "bob") if left else (standing, "ann"))
    assert len(await trail(store, session)) == (2 if left else 1)


async def test_a_session_that_ended_expired_never_was_or_does_not_hear_gets_no_order(
    store: Store, clock: Clock
):
    expired = await hearing(store)
    clock.advance(LEASE)
    ended, deaf = await hearing(store), await a_session(store)
    await store.end_session(ended)

    for session in (expired, ended, deaf, new_id()):
        assert not await order(store, session, DRAIN)
        assert await trail(store, session) == []
    assert not (await record(store, deaf)).hears


async def test_secrets_in_a_reason_are_hidden_where_it_is_kept(store: Store):
    session = await hearing(store)
    await order(store, session, DRAIN, reason="password=hunter2hunter2\0")

    found = (await record(store, session)).order
    assert found is not None
    assert found.reason is not None
    assert "hunter2" not in found.reason
    assert "\0" not in found.reason
