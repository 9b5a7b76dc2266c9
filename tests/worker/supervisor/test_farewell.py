"""The farewell to a dead child: its session ends at once, and every job that it owned is decided."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from build import Clock, a_job, a_session, claim, read
from rota._core.job import State
from rota.stores.contract import Beat, SessionStart, Store
from rota.stores.memory import MemoryStore
from rota.worker.supervisor.farewell import Farewell
from rota.worker.supervisor.report import CrashReport

LOST = CrashReport(
    number=1, pid=4711, session=None, exit_code=None, signal=int(signal.SIGKILL), ended_for=None, culprits=(),
    running=(), begun=frozenset(), tick_age=0.1, rss=None, stack="", last_lines=(),
)  # fmt: skip


@pytest.mark.req("L39")
async def test_the_session_of_a_dead_child_is_over_at_once_and_its_jobs_are_decided(store: Store):
    session = await a_session(store)
    await store.enqueue([a_job(), a_job()])
    begun, waiting = await claim(store, session)
    report = replace(LOST, session=session, begun=frozenset({(begun.id, begun.version)}))

    await Farewell(store, report).step()

    [record] = await store.sessions()
    assert record.ended_at is not None
    assert await store.beat(session, lease=15.0, holding={}) == Beat(alive=False)
    suspect, unharmed = await read(store, begun), await read(store, waiting)
    assert (suspect.state, suspect.attempt, suspect.losses) == (State.PENDING, 0, 1)
    assert (unharmed.state, unharmed.attempt, unharmed.losses) == (State.PENDING, 0, 0)


async def test_jobs_of_others_are_left_alone(store: Store):
    session, other = await a_session(store), await a_session(store)
    await store.enqueue([a_job()])
    [theirs] = await claim(store, other)

    await Farewell(store, replace(LOST, session=session)).step()

    assert await read(store, theirs) == theirs
    assert (await store.beat(other, lease=15.0, holding={theirs.id: theirs.version})) == Beat(alive=True)


async def test_what_a_last_claim_still_brought_to_the_dead_child_is_taken_back_too(clock: Clock):
    class LateClaim(MemoryStore):
        """The claim of the dead child comes through just before its session ends."""

        async def end_session(self, session: UUID) -> None:
            late.extend(await claim(self, session))
            await super().end_session(session)

    late: list[Any] = []
    store = LateClaim(clock=clock)
    start = SessionStart(id=a_job().id, host="here", pid=1, lanes={}, tasks=())
    await store.open_session(start, lease=15.0)
    await store.enqueue([a_job()])

    await Farewell(store, replace(LOST, session=start.id)).step()

    [job] = late
    assert ((await read(store, job)).state, (await read(store, job)).attempt) == (State.PENDING, 0)
