"""F48: a worker comes back on the same host with the same process id, as in a container, while its old lease lasts."""

from __future__ import annotations

from build import LEASE, a_job, a_session, claim, completed, fenced, read, rescue
from rota._core.job import State
from rota.stores.contract import Store


async def test_a_worker_that_comes_back_under_the_same_name_adopts_nothing_of_its_former_life(
    store: Store, clock
):
    await store.enqueue([a_job()])
    former = await a_session(store, "web-1")
    [job] = await claim(store, former)
    clock.advance(LEASE - 1)
    again = await a_session(store, "web-1")
    beat = await store.beat(again, lease=LEASE, holding={}, strays=True)

    assert (beat.alive, beat.strays) == (True, ())
    assert await claim(store, again) == []
    clock.advance(2)
    assert (await store.beat(again, lease=LEASE, holding={}, strays=True)).alive
    assert not (await store.beat(former, lease=LEASE, holding={job.id: job.version})).alive
    assert [lost.id for lost in await rescue(store)] == [job.id]
    [rerun] = await claim(store, again)
    assert (rerun.id, rerun.attempt, rerun.losses) == (job.id, 2, 1)
    assert await store.settle([completed(job)]) == [fenced(job, State.RUNNING)]
    assert (await read(store, job)).session_id == again
