"""Backlogs: "how many jobs wait in a queue, by tenant; or all under None"."""

from __future__ import annotations

from build import a_job, claim
from rota.stores.contract import Store


async def test_what_waits_in_a_queue_is_counted_with_its_tenants_or_without(store: Store):
    await store.enqueue([a_job(queue="mail", tenant=tenant) for tenant in ("acme", "acme", "zoo", None)])
    await store.enqueue(
        [a_job(queue="mail", tenant="zoo", gate="serial::a", delay=3600), a_job(queue="other")]
    )
    await store.enqueue([a_job(queue="mail", held=True)])  # waits for a person, not in line

    assert await store.backlog("mail", cap=100, by_tenant=False) == {None: 5}
    assert await store.backlog("mail", cap=100, by_tenant=True) == {"acme": 2, "zoo": 2, None: 1}
    assert await store.backlog("none", cap=100, by_tenant=False) == {None: 0}
    assert await store.backlog("none", cap=100, by_tenant=True) == {}


async def test_jobs_that_run_or_are_parked_do_not_wait_in_line(store: Store):
    await store.enqueue([a_job(queue="mail", gate="serial::a") for _ in range(2)])
    assert len(await claim(store)) == 1  # and the other is parked behind the gate

    assert await store.backlog("mail", cap=100, by_tenant=False) == {None: 0}


async def test_counting_ends_at_the_cap(store: Store):
    await store.enqueue([a_job(queue="mail", tenant="acme") for _ in range(20)])

    assert await store.backlog("mail", cap=5, by_tenant=False) == {None: 5}
    assert await store.backlog("mail", cap=5, by_tenant=True) == {"acme": 5}
