"""The seeds' own queries, on views in their own words."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from build import a_job, a_session, claim, completed, failed, new_id, partial, read
from rota._core.failure import ErrorClass
from rota._core.numbers import Ending, Minute, TenantTotal, Total, minute_of
from rota.stores.contract import Wanted


async def ask(store, query: str, **parameters) -> list[tuple]:
    async with await psycopg.AsyncConnection.connect(store.url) as connection:
        return await (await connection.execute(query, parameters)).fetchall()


async def move(store, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(store.url, autocommit=True) as connection:
        await connection.execute(statement)


@pytest.fixture
async def busy(store):
    """A retried mail, a waiting one, a running analysis, a dead webhook, a completed and a partial email."""
    session = await a_session(store, "web1", lease=300)
    for job in (
        a_job("mail", {"n": 1}, max_attempts=3, tenant="org1"),
        a_job("webhook", correlation_id="user-action-7"),
        a_job("email", tenant="org1"),
        a_job("sync"),
        a_job("analysis", {"project_id": 7, "build_id": 9}),
    ):
        await store.enqueue([job])
    jobs = {job.task: job for job in await claim(store, session, Wanted(10))}
    await store.settle([failed(jobs["mail"], message="smtp is down")])
    await store.settle([failed(jobs["webhook"], ErrorClass.NON_RETRYABLE, "no such hook")])
    await store.settle([completed(jobs["email"]), partial(jobs["sync"])])
    await store.enqueue([a_job("mail", tenant="org1"), a_job("held", held=True)])
    return jobs


@pytest.mark.req("L27", "L14")
async def test_queue_health_by_type_and_status_and_the_stats_of_the_whole(store, busy):
    now = await store.now()
    done = Minute(minute_of(now), [Total("default", "email", Ending.COMPLETED, 4)])
    await store.note_minutes(new_id(), [done])
    await move(
        store,
        "UPDATE rota.jobs SET run_at = now() - interval '5 minutes' WHERE task = 'mail' AND attempt = 0",
    )

    rows = await ask(
        store, "SELECT type, status, count FROM rota_lipas.job_queue_health ORDER BY type, status"
    )
    assert rows == [
        ("analysis", "processing", 1),
        ("email", "completed", 4),
        ("held", "paused", 1),
        ("mail", "failed", 1),
        ("mail", "pending", 1),
        ("webhook", "dead", 1),
    ]
    assert await ask(store, "SELECT * FROM rota_lipas.queue_stats") == [(1, 1, 1, 5)]


@pytest.mark.req("L28")
async def test_stuck_jobs_are_those_that_run_for_more_than_an_hour(store, busy):
    assert await ask(store, "SELECT id FROM rota_lipas.stuck_jobs") == []

    await move(
        store, "UPDATE rota.jobs SET claimed_at = now() - interval '61 minutes' WHERE state = 'running'"
    )
    assert await ask(store, "SELECT id, type, status, host FROM rota_lipas.stuck_jobs") == [
        (busy["analysis"].id, "analysis", "processing", "web1")
    ]
    same = "SELECT id FROM rota_lipas.jobs WHERE status = 'processing' AND started_at < NOW() - INTERVAL '1 hour'"
    assert await ask(store, same) == [(busy["analysis"].id,)]


@pytest.mark.req("L29")
async def test_failures_of_the_last_hour_by_type_with_the_latest(store, busy):
    rows = await ask(
        store, "SELECT type, failures, latest_error FROM rota_lipas.recent_failures ORDER BY type"
    )

    assert rows == [("mail", 1, "smtp is down"), ("webhook", 1, "no such hook")]
    own = (
        "SELECT type, COUNT(*) AS failures, MAX(last_error_at) AS latest_failure FROM rota_lipas.jobs "
        "WHERE status = 'failed' AND last_error_at > NOW() - INTERVAL '1 hour' GROUP BY type"
    )
    [(kind, failures, latest)] = await ask(store, own)
    assert (kind, failures) == ("mail", 1)
    assert latest is not None


@pytest.mark.req("L3", "L33")
async def test_dead_letters_keep_the_original_job_and_every_error(store, busy):
    own = (
        "SELECT id, original_job->>'type' AS job_type, error_message, died_at FROM rota_lipas.dead_letter_jobs "
        "WHERE acknowledged = false ORDER BY died_at DESC"
    )
    [(job_id, kind, message, died_at)] = await ask(store, own)
    assert (job_id, kind, message) == (busy["webhook"].id, "webhook", "no such hook")
    assert died_at is not None
    [(original, details)] = await ask(
        store, "SELECT original_job, error_details FROM rota_lipas.dead_letter_jobs"
    )
    assert original["correlation_id"] == "user-action-7"
    assert [(row["attempt"], row["class"]) for row in details] == [(1, "non_retryable")]

    await move(
        store,
        "UPDATE rota.dead_jobs SET review = 'acknowledged', reviewed_by = 'admin@lipas.fi', reviewed_at = now()",
    )
    assert await ask(store, own) == []
    [(done, who, when)] = await ask(
        store, "SELECT acknowledged, acknowledged_by, acknowledged_at FROM rota_lipas.dead_letter_jobs"
    )
    assert (done, who, when is not None) == (True, "admin@lipas.fi", True)


@pytest.mark.req("L5")
async def test_every_job_that_ended_has_its_times(store, busy):
    rows = await ask(
        store,
        "SELECT job_type, status, duration_ms >= 0, queue_time_ms >= 0 FROM rota_lipas.job_metrics ORDER BY 1",
    )

    assert rows == [
        ("email", "completed", True, True),
        ("sync", "completed", True, True),
        ("webhook", "dead", True, True),
    ]


@pytest.mark.req("L40")
async def test_the_type_with_the_largest_payloads_is_found(store):
    await store.enqueue([a_job("small", {"n": 1}), a_job("large", {"text": "".join(map(str, range(500)))})])

    rows = await ask(store, "SELECT type, jobs FROM rota_lipas.payload_sizes ORDER BY largest_bytes DESC")
    assert rows == [("large", 1), ("small", 1)]


@pytest.mark.req("V24")
async def test_the_queries_of_docverse(store, busy):
    now = await store.now()
    totals = [Total("default", "sync", Ending.PARTIAL, 1), Total("default", "email", Ending.COMPLETED, 3)]
    tenants = [TenantTotal("org1", 3, 1), TenantTotal("", 1)]
    await store.note_minutes(
        new_id(),
        [
            Minute(minute_of(now), totals, tenants),
            Minute(minute_of(now - timedelta(minutes=5)), (), [TenantTotal("org1", 2)]),
        ],
    )

    assert await ask(store, "SELECT kind, queued FROM rota_docverse.backlog_by_kind") == [("mail", 2)]
    own = "SELECT count(*), kind FROM rota_docverse.queue_job WHERE status = 'queued' GROUP BY kind"
    assert await ask(store, own) == [(2, "mail")]
    active = await ask(store, "SELECT id, kind, project_id, build_id, host FROM rota_docverse.active_work")
    assert active == [(busy["analysis"].id, "analysis", 7, 9, "web1")]
    assert await ask(store, "SELECT kind, errors FROM rota_docverse.recent_errors") == [("sync", 1)]
    assert await ask(store, "SELECT * FROM rota_docverse.org_throughput ORDER BY org_id") == [
        ("", 1, 0),
        ("org1", 4, 1),
    ]
    assert await ask(store, "SELECT id FROM rota_docverse.slow_jobs") == []
    await move(
        store, "UPDATE rota.jobs SET claimed_at = now() - interval '11 minutes' WHERE state = 'running'"
    )
    assert await ask(store, "SELECT id FROM rota_docverse.slow_jobs") == [(busy["analysis"].id,)]


async def test_every_state_has_its_word_in_each_view(store, busy):
    from rota._core.vocabulary import Seed, words

    for schema, seed in (("rota_lipas.jobs", Seed.LIPAS), ("rota_docverse.queue_job", Seed.DOCVERSE)):
        found = {status for (status,) in await ask(store, f"SELECT DISTINCT status FROM {schema}")}
        assert found <= words(seed)
    assert (await read(store, busy["analysis"])).task == "analysis"


async def test_what_runs_behind_a_large_backlog_is_counted(store):
    await move(
        store,
        "INSERT INTO rota.jobs (id, run_at, created_at, updated_at, task, queue) "
        "SELECT gen_random_uuid(), now(), now(), now(), 'mail', 'mail' FROM generate_series(1, 100000)",
    )
    await store.enqueue([a_job("urgent", queue="urgent")])
    await claim(store, wanted=Wanted(1, queues=("urgent",)))

    rows = await ask(store, "SELECT type, status, count FROM rota_lipas.job_queue_health ORDER BY type")
    assert rows == [("mail", "pending", 100_000), ("urgent", "processing", 1)]
    assert (await ask(store, "SELECT pending, processing FROM rota_lipas.queue_stats")) == [(100_000, 1)]
    counts = {(count.task, count.state): count.jobs for count in await store.counts()}
    assert counts == {("mail", "pending"): 100_000, ("urgent", "running"): 1}


@pytest.mark.parametrize("view", ["recent_failures", "stuck_jobs"])
async def test_what_is_asked_in_a_hurry_reads_no_history(store, view):
    """With a long history, the failures of an hour are found by their time and their jobs by key."""
    await move(
        store,
        "INSERT INTO rota.failed_attempts SELECT gen_random_uuid(), 2, 1, 'retry', 'retryable', 'E', 'm', NULL, NULL, "
        "now(), now() - interval '1 day' * (n % 30 + 1) FROM generate_series(1, 20000) AS n",
    )
    await move(store, "ANALYZE")
    plan = str(await ask(store, f"EXPLAIN SELECT * FROM rota_lipas.{view}"))

    assert "Seq Scan on failed_attempts" not in plan
    assert "Seq Scan on finished_jobs" not in plan or "Index" in plan
