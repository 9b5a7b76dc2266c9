"""Operators who act on what they read a while ago: the job may be in that state again, and is still another one."""

from __future__ import annotations

import pytest

from build import LEASE, Clock, a_job, a_running_job, by_hand, claim, fenced, read, rescue
from rota._core.actions import Audit, CancelRequest, Removal, Verb
from rota._core.job import Job, State
from rota.stores.contract import Store

ENDS = {State.DEAD: Verb.KILL, State.CANCELLED: Verb.CANCEL}


async def ended_twice(store: Store, end: State) -> tuple[Job, Job]:
    """A job that was ended by hand, retried and ended again: as it was the first time, and as it is."""
    new = a_job()
    await store.enqueue([new])
    await by_hand(store, await read(store, new), ENDS[end])
    before = await read(store, new)
    await by_hand(store, before, Verb.RETRY)
    await by_hand(store, await read(store, new), ENDS[end])
    now = await read(store, new)
    assert (before.state, now.state) == (end, end)
    return before, now


@pytest.mark.req("D16")
async def test_a_request_to_stop_an_older_claim_does_not_stop_the_newer_one(store: Store, clock: Clock):
    old = await a_running_job(store)
    clock.advance(LEASE)
    await rescue(store)
    [new] = await claim(store)

    answer = await store.change(CancelRequest(old, "too slow"), Audit("ada", "cancel", old.id))

    assert answer == fenced(old, State.RUNNING)
    assert await read(store, old) == new
    assert await store.audit() == []


@pytest.mark.parametrize("end", ENDS)
async def test_a_retry_of_an_older_end_does_not_bring_the_job_back(store: Store, end: State):
    before, now = await ended_twice(store, end)
    trail = await store.audit()

    assert await by_hand(store, before, Verb.RETRY) == fenced(before, end)
    assert await read(store, before) == now
    assert await store.audit() == trail


@pytest.mark.parametrize("end", ENDS)
async def test_a_removal_of_an_older_end_removes_nothing(store: Store, end: State):
    before, now = await ended_twice(store, end)
    trail = await store.audit()

    assert await store.change(Removal(before), Audit("ada", "delete", before.id)) == fenced(before, end)
    assert await read(store, before) == now
    assert await store.audit() == trail


async def test_a_hold_of_an_older_wait_holds_nothing(store: Store):
    new = a_job()
    await store.enqueue([new])
    before = await read(store, new)
    await by_hand(store, before, Verb.HOLD)
    await by_hand(store, await read(store, new), Verb.RELEASE)
    now = await read(store, new)

    assert await by_hand(store, before, Verb.HOLD) == fenced(before, State.PENDING)
    assert await read(store, new) == now
