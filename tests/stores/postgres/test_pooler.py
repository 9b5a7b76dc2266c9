"""Behind a pooler in transaction mode: no statement may count on the connection that the one before had."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import psycopg
import pytest

import servers
from build import ANY, a_job, a_running_job, a_session, applied, by_hand, claim, completed, failed, read
from rota._core.actions import Verb
from rota._core.job import State
from rota.stores.contract import Retention, Stored, WorkHint
from rota.stores.postgres import PostgresStore

# `make test` fetches the pooler; `make check` wants nothing but Python packages.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pooler(own_server: servers.Server) -> Iterator[servers.Pooler]:
    """A PgBouncer in transaction mode with three server connections for each database."""
    pooler = servers.Pooler(own_server)
    pooler.start()
    yield pooler
    pooler.stop()


@pytest.fixture
def pooled(own_database: str, pooler: servers.Pooler) -> str:
    """The address of an empty database, by way of the pooler."""
    return pooler.before(own_database)


@pytest.fixture
async def store(pooled: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(pooled)
    await store.migrate()
    yield store
    await store.close()


async def test_the_pooler_is_seen_and_nothing_is_kept_prepared(store, pooled):
    for _ in range(10):
        await store.enqueue([a_job()])
        await claim(store)

    connections = store._desks().connections
    assert not connections.direct
    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as connection:
        assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


async def test_a_direct_address_is_seen_as_one_too(store, own_database):
    direct = PostgresStore(own_database)
    await direct.open()

    assert direct._desks().connections.direct
    await direct.close()


async def test_a_job_goes_all_the_way(store):
    session = await a_session(store)
    await store.enqueue([a_job(), a_job()])
    first, second = await claim(store, session)

    assert (await store.beat(session, lease=15, holding={first.id: first.version})).alive
    assert await store.settle([failed(first)]) == [applied(first, State.PENDING)]
    settled, more = await store.exchange([completed(second, {"sent": 1})], ANY, session=session)
    assert (settled, more) == ([applied(second, State.COMPLETED)], [])
    assert (await read(store, second)).result_json == '{"sent": 1}'
    assert [attempt.message for attempt in await store.attempts(first.id)] == ["boom"]


async def test_many_callers_share_the_few_server_connections(store, pooled):
    """Each statement may come from another backend than the one before."""
    done = []

    async def work() -> None:
        own = PostgresStore(pooled)
        session = await a_session(own, lease=60)
        while len(done) < 120:
            for job in await claim(own, session):
                await own.settle([completed(job)])
                done.append(job.id)
        await own.close()

    jobs = [a_job() for _ in range(120)]
    async with asyncio.timeout(60):
        await asyncio.gather(*[store.enqueue([job]) for job in jobs], *[work() for _ in range(4)])

    assert sorted(done) == sorted(job.id for job in jobs)


async def test_bulk_and_keys_keep_their_promises(store):
    await store.enqueue([a_job() for _ in range(300)])
    key = [a_job(key="order:1") for _ in range(5)]
    answers = await asyncio.gather(*[store.enqueue([job]) for job in key])

    stored = [answer.stored for [answer] in answers]
    assert sorted(stored) == [Stored.CREATED, *[Stored.DUPLICATE] * 4]
    assert len(await claim(store, wanted=ANY._replace(limit=500))) == 301


async def test_gates_let_one_through_at_a_time(store):
    first, second = a_job(gate="account:1"), a_job(gate="account:1")
    await store.enqueue([first, second])

    [running] = await claim(store)
    assert running.id == first.id
    await store.settle([completed(running)])
    assert [job.id for job in await claim(store)] == [second.id]


async def test_operators_may_act(store):
    job = await a_running_job(store)
    await store.settle([failed(job, retry=None)])
    waiting = await read(store, job)

    await by_hand(store, waiting, Verb.CANCEL, reason="not wanted")
    await by_hand(store, await read(store, job), Verb.RETRY)

    assert (await read(store, job)).state is State.PENDING
    assert [entry.action for entry in await store.audit(job.id)] == ["retry", "cancel"]


async def test_the_janitor_and_the_registry_work(store):
    tidied = await store.tidy(Retention())
    await store.publish([])

    assert tidied.finished == 0
    assert await store.tasks() == []
    assert await store.unpark() == 0


async def test_without_a_direct_address_it_polls_and_says_so(store, caplog):
    caplog.set_level(logging.INFO, "rota.listen")
    heard = []
    listening = asyncio.create_task(store.listen(heard.append))
    async with asyncio.timeout(5):
        while (
            "a pooler stands before the database and no listen_url is set: polling instead" not in caplog.text
        ):
            await asyncio.sleep(0.01)
    await store.enqueue([a_job()])

    assert not store.hearing
    assert len(await claim(store)) == 1
    assert heard == []
    await stopped(listening)


async def test_with_a_direct_address_to_listen_at_hints_arrive(store, pooled, own_database):
    hearer = PostgresStore(pooled, listen_url=own_database)
    heard: asyncio.Queue[object] = asyncio.Queue()
    listening = asyncio.create_task(hearer.listen(heard.put_nowait))
    async with asyncio.timeout(10):
        await heard.get()  # it listens now
        await store.enqueue([a_job(queue="mail", priority=7)])

        assert await heard.get() == WorkHint("mail", 7)
    assert hearer.hearing
    assert not hearer._desks().connections.direct
    await stopped(listening)
    await hearer.close()


async def test_a_listening_address_that_leads_to_the_pooler_too_is_noticed(store, pooled, caplog):
    deaf = PostgresStore(pooled, listen_url=pooled)
    heard: list[object] = []
    listening = asyncio.create_task(deaf.listen(heard.append))
    async with asyncio.timeout(5):
        while "listen_url leads to a pooler, which keeps hints to itself: polling instead" not in caplog.text:
            await asyncio.sleep(0.01)

    assert (deaf.hearing, heard) == (False, [])
    assert [finding for finding in await deaf.diagnose() if finding.what.startswith("hints")] == [
        (
            "warn",
            "hints: listen_url leads to a pooler, which keeps them to itself",
            "Set listen_url (ROTA_LISTEN_URL) to the server's own address.",
        )
    ]
    await stopped(listening)
    await deaf.close()


async def test_the_doctor_names_the_pooler_and_the_remedy(store, pooled, own_database):
    told = PostgresStore(pooled, listen_url=own_database)

    without = {finding.what.partition(":")[0]: finding for finding in await store.diagnose()}
    with_it = {finding.what.partition(":")[0]: finding for finding in await told.diagnose()}

    assert without["pooler"] == (
        "warn",
        "pooler: one in transaction mode stands between, so new jobs are found by polling only",
        "Set listen_url (ROTA_LISTEN_URL) to a direct address for prompt starts.",
    )
    assert "hints" not in without
    assert with_it["pooler"][:2] == (
        "ok",
        "pooler: one in transaction mode stands between; hints come by listen_url",
    )
    assert with_it["hints"].what.startswith("hints: a round trip took ")
    await told.close()


async def test_the_doctor_leaves_nobody_listening_behind_the_pooler(store, pooled):
    await store.diagnose()

    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as connection:
        assert connection.execute("SELECT pg_listening_channels()").fetchall() == []


async def stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
