"""Effect keys live through whatever a store does to a job."""

from __future__ import annotations

from build import a_job, a_running_job, by_hand, claim, failed, lost, read
from rota._core.actions import Verb
from rota._core.effects import continued_headers, effect_key
from rota._core.failure import ErrorClass
from rota.current import RunningJob


async def test_the_key_is_the_same_after_a_failure_a_loss_and_a_retry_by_hand(store, clock):
    first = await a_running_job(store)
    await store.settle([failed(first, now=clock())])
    clock.advance(60)
    [second] = await claim(store)
    await store.settle([lost(second, now=clock())])
    clock.advance(60)
    [third] = await claim(store)
    await store.settle([failed(third, ErrorClass.NON_RETRYABLE)])
    await by_hand(store, await read(store, first), Verb.RETRY)
    [fourth] = await claim(store)

    keys = {RunningJob(job).effect_key for job in (first, second, third, fourth)}
    parts = {RunningJob(job).effect_key_for("charge") for job in (first, second, third, fourth)}
    assert keys == {str(first.id)}
    assert len(parts) == 1


async def test_a_new_job_that_continues_a_dead_one_has_its_key_in_every_store(store):
    dead = await a_running_job(store)
    await store.settle([failed(dead, ErrorClass.NON_RETRYABLE)])
    again = a_job(headers_json=continued_headers(await read(store, dead)))
    await store.enqueue([again])
    [job] = await claim(store)

    assert job.id == again.id != dead.id
    assert effect_key(job) == str(dead.id)
