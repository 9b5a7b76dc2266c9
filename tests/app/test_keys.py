"""Three keys, never mixed: key (idempotency), unique (deduplication), serial (one at a time)."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from rota import KeyConflict, NotUnique, State, Unique
from rota.stores.contract import JobFilter


@pytest.fixture
def charge(app):
    @app.task
    async def charge(order: int, cents: int = 0) -> int:
        return order

    return charge


@pytest.mark.req("W14")
async def test_a_second_enqueue_with_a_key_is_the_first_job(charge):
    first = await charge.using(tenant="acme", key="order:7").enqueue(7)
    second = await charge.using(tenant="acme", key="order:7").enqueue(7)

    assert (first.created, second.created) == (True, False)
    assert second.id == first.id


@pytest.mark.req("W14")
async def test_a_key_outlives_its_job(app, charge, work):
    first = await charge.using(key="order:7").enqueue(7)
    await work(app)
    second = await charge.using(key="order:7").enqueue(7)

    assert not second.created
    assert await second == 7
    assert second.id == first.id


async def test_a_key_is_forgotten_after_its_window(app, charge, work, clock):
    first = await charge.using(key="order:7", key_window="1h").enqueue(7)
    await work(app)
    clock.advance(3601)
    second = await charge.using(key="order:7", key_window="1h").enqueue(7)

    assert second.created
    assert second.id != first.id


@pytest.mark.req("W14")
async def test_other_arguments_under_the_same_key_are_a_conflict(charge):
    first = await charge.using(key="order:7").enqueue(7)

    with pytest.raises(KeyConflict) as refused:
        await charge.using(key="order:7").enqueue(8)

    assert refused.value.job_id == first.id
    assert f"the key 'order:7' belongs to job {first.id}, which was enqueued with other arguments" in str(
        refused.value
    )


@pytest.mark.req("W15")
async def test_the_same_key_in_two_tenants_is_two_jobs(charge):
    ours = await charge.using(tenant="acme", key="order:7").enqueue(7)
    theirs = await charge.using(tenant="globex", key="order:7").enqueue(7)

    assert ours.created
    assert theirs.created
    assert ours.id != theirs.id


@pytest.mark.req("W14")
async def test_of_a_hundred_parallel_callers_with_one_key_one_creates_the_job(app, charge):
    handles = await asyncio.gather(*(charge.using(key="order:7").enqueue(7) for _ in range(100)))

    assert sum(handle.created for handle in handles) == 1
    assert len({handle.id for handle in handles}) == 1
    assert len(await app.store.find(JobFilter(task="charge"))) == 1


@pytest.mark.req("L12")
async def test_of_a_hundred_parallel_callers_with_one_unique_key_one_creates_the_job(app, charge):
    handles = await asyncio.gather(*(charge.using(unique="site:1").enqueue(number) for number in range(100)))

    assert sum(handle.created for handle in handles) == 1
    assert len(await app.store.find(JobFilter(task="charge"))) == 1


@pytest.mark.req("L12")
async def test_a_unique_key_suppresses_a_second_job_of_the_same_task_only(app, charge):
    @app.task
    async def refund(order: int) -> None: ...

    first = await charge.using(unique="site:1").enqueue(1)
    second = await charge.using(unique="site:1").enqueue(2)
    other = await refund.using(unique="site:1").enqueue(1)

    assert (second.created, second.id) == (False, first.id)
    assert other.created
    assert (await first.refresh()).payload == {"order": 1}


async def test_unless_told_a_unique_key_is_free_once_its_job_has_started(app, charge, work):
    await charge.using(unique="site:1").enqueue(1)
    await work(app)

    assert (await charge.using(unique="site:1").enqueue(2)).created


async def test_a_unique_key_may_last_for_a_window(app, charge, work, clock):
    once = charge.using(unique=Unique("site:1", until="5m"))
    await once.enqueue(1)
    await work(app)
    clock.advance(299)
    assert not (await once.enqueue(1)).created
    clock.advance(2)

    assert (await once.enqueue(1)).created


@pytest.mark.parametrize(
    ("policy", "payload"),
    [("keep", {"order": 1, "cents": 5}), ("replace", {"order": 2}), ("merge", {"order": 2, "cents": 5})],
)
async def test_a_duplicate_may_change_the_waiting_job(charge, policy, payload):
    once = charge.using(unique=Unique("site:1", on_duplicate=policy))
    first = await once.enqueue(1, 5)
    second = await once.enqueue(2)

    assert (second.created, second.id) == (False, first.id)
    assert (await first.refresh()).payload == payload


async def test_a_duplicate_may_be_rejected(charge):
    once = charge.using(unique=Unique("site:1", on_duplicate="reject"))
    first = await once.enqueue(1)

    with pytest.raises(NotUnique) as refused:
        await once.enqueue(1)

    assert refused.value.job_id == first.id
    assert f"a job with the unique key 'site:1' exists already: {first.id}" in str(refused.value)


async def test_the_decorator_may_name_the_parameter_that_is_the_key(app):
    @app.task(unique="account")
    async def sync(account: UUID, force: bool = False) -> None: ...

    first = await sync.enqueue(UUID(int=1))
    same = await sync.enqueue(UUID(int=1), force=True)
    other = await sync.enqueue(UUID(int=2))

    assert (same.created, same.id) == (False, first.id)
    assert other.created
    assert (await first.refresh()).unique_key == str(UUID(int=1))


@pytest.mark.parametrize(
    ("value", "text"), [(7, "7"), ("a", "a"), (True, "true"), (1.5, "1.5"), ([1, 2], "[1, 2]"), (None, None)]
)
async def test_a_parameter_as_key_reads_as_it_would_in_sql(memory_app, value, text):
    @memory_app.task(key="on")
    def look(on) -> None: ...

    assert look.prepare((value,), {}).key == text


async def test_a_default_counts_as_the_value_of_the_key(memory_app):
    @memory_app.task(serial="account")
    def look(account: int = 3) -> None: ...

    assert look.prepare((), {}).gate == "serial::3"


async def test_a_key_function_gets_the_arguments_of_the_call(memory_app):
    @memory_app.task(key=lambda order, cents, *, day="mon": f"{order}-{cents}-{day}")
    def charge(order: int, cents: int = 5, *, day: str = "sun") -> None: ...

    assert charge.prepare(("7",), {}).key == "7-5-sun"
    assert charge.prepare((7, 8), {"day": "tue"}).key == "7-8-tue"


async def test_a_key_function_may_say_that_there_is_no_key(memory_app):
    @memory_app.task(unique=lambda order: None)
    def charge(order: int) -> None: ...

    assert charge.prepare((7,), {}).unique_key is None


async def test_using_wins_over_the_decorator(memory_app):
    @memory_app.task(key="order", unique="order", serial="order")
    def charge(order: int) -> None: ...

    handle = await charge.using(key="k", unique="u", serial="s", tenant="acme").enqueue(7)

    job = await handle.refresh()
    assert (job.key, job.unique_key, job.gate) == ("k", "u", "serial:acme:s")


async def test_a_key_function_that_gives_no_text_is_told_so(memory_app):
    @memory_app.task(key=lambda order: order)
    def charge(order: int) -> None: ...

    with pytest.raises(TypeError, match="key of charge must be a text, not 7"):
        charge.prepare((7,), {})


@pytest.mark.req("W10")
async def test_jobs_with_the_same_serial_text_are_claimed_one_at_a_time(app, charge):
    from build import ANY, a_session, completed

    await charge.using(serial="account:1").enqueue(1)
    await charge.using(serial="account:1").enqueue(2)
    await charge.using(serial="account:2").enqueue(3)
    await charge.using(serial="account:1", tenant="acme").enqueue(4)
    session = await a_session(app.store)

    running = await app.store.claim(ANY, session=session)
    assert {job.payload["order"] for job in running} == {1, 3, 4}
    [first] = [job for job in running if job.payload["order"] == 1]
    await app.store.settle([completed(first)])
    await app.store.unpark()

    [second] = await app.store.claim(ANY, session=session)
    assert (second.payload["order"], second.state) == (2, State.RUNNING)
