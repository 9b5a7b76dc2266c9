"""Jobs from SQL, from any language and any trigger: by the rules of the published task, in the caller's transaction."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row

from build import a_job, a_running_job, cancelled, claim, completed, failed, new_id, read
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota._core.retry import Retry
from rota._core.task_spec import TaskSpec
from rota.stores.contract import JobFilter

EMAIL = TaskSpec(
    "email",
    queue="fast",
    priority=50,
    retry=Retry(attempts=7),
    timeout=120.0,
    payload_version="2.1",
    gate_path="account",
    category="notifications",
)


@pytest.fixture
async def sql(store, fresh_database) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A connection as any other program has it; `email` is published."""
    await store.publish([EMAIL, TaskSpec("report")])
    async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
        yield connection


async def one(connection: psycopg.AsyncConnection[Any], question: str, *values: Any) -> Any:
    row = await (await connection.execute(question, values)).fetchone()
    assert row is not None
    return row[0]


# rota.enqueue()


async def test_a_job_takes_what_its_task_was_published_with(store, sql):
    job_id = await one(sql, """SELECT rota.enqueue('email', '{"to": "ann", "copy": null}')""")
    await sql.commit()

    job = await read(store, job_id)
    assert (job.queue, job.priority, job.max_attempts, job.timeout) == ("fast", 50, 7, 120.0)
    assert (job.payload_version, job.category, job.created_by) == ("2.1", "notifications", "sql:rota")
    assert (job.state, job.attempt, job.gate, job.tenant) == (State.PENDING, 0, None, None)
    assert job.payload == {"to": "ann", "copy": None}
    assert (await claim(store))[0].id == job_id


async def test_what_the_caller_says_goes_before_what_the_task_says(store, sql):
    parent = new_id()
    job_id = await one(
        sql,
        "SELECT rota.enqueue('email', queue => 'slow', priority => 7, max_attempts => 2, tenant => 'acme',"
        " subject => 'user:1', correlation_id => 'order-9', parent_id => %s, tags => ARRAY['a', 'b \"c\"'],"
        " created_by => 'shop', external_id => 'X-1', delay => '2 minutes', deadline => '1 hour')",
        parent,
    )
    await sql.commit()

    job = await read(store, job_id)
    assert (job.queue, job.priority, job.max_attempts) == ("slow", 7, 2)
    assert (job.tenant, job.subject, job.correlation_id, job.external_id) == (
        "acme",
        "user:1",
        "order-9",
        "X-1",
    )
    assert (job.parent_id, job.tags, job.created_by) == (parent, ("a", 'b "c"'), "shop")
    assert job.run_at - job.created_at == timedelta(minutes=2)
    assert job.deadline - job.created_at == timedelta(hours=1)
    assert await claim(store) == []


async def test_an_absolute_time_is_kept_to_the_microsecond(store, sql):
    moment = datetime(2031, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)
    await sql.execute("SET TIME ZONE 'Asia/Tokyo'")

    job_id = await one(sql, "SELECT rota.enqueue('email', run_at => %s)", moment)
    await sql.commit()

    assert (await read(store, job_id)).run_at == moment


async def test_an_unknown_task_is_refused_with_a_hint(store, sql):
    with pytest.raises(psycopg.errors.NoDataFound) as refused:
        await sql.execute("SELECT rota.enqueue('e''mail')")
    await sql.rollback()

    diag = refused.value.diag
    assert diag.message_primary == "rota: no task named 'e''mail' is published"
    assert diag.message_hint == (
        "Start a worker that knows it once, or check the name: SELECT name FROM rota.tasks."
    )
    assert await store.find(JobFilter()) == []


@pytest.mark.parametrize(
    ("payload", "kind"),
    [("[1]", "array"), ('"text"', "string"), ("7", "number"), ("null", "null"), (None, "null")],
)
async def test_a_payload_that_is_no_object_of_arguments_is_refused(sql, payload, kind):
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        await sql.execute("SELECT rota.enqueue('email', %s::text::jsonb)", [payload])

    assert refused.value.diag.message_primary == (
        f"rota: the payload of 'email' must be a JSON object of its arguments, not {kind}"
    )


async def test_a_payload_that_is_too_large_is_refused_and_nothing_is_stored(store, sql):
    with pytest.raises(psycopg.errors.ProgramLimitExceeded) as refused:
        await sql.execute("SELECT rota.enqueue('email', jsonb_build_object('text', repeat('x', 262144)))")
    await sql.rollback()

    diag = refused.value.diag
    assert diag.message_primary == "rota: the payload of 'email' is 262156 bytes; the limit is 262144"
    assert diag.message_hint == "Store the content elsewhere and pass a reference to it."
    assert await store.find(JobFilter()) == []


async def test_a_large_payload_that_a_table_keeps_compressed_is_refused_too(sql):
    await sql.execute(
        "CREATE TABLE public.outbox AS SELECT jsonb_build_object('text', repeat('x', 262144)) AS payload"
    )

    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="is 262156 bytes"):
        await sql.execute("SELECT rota.enqueue('email', payload) FROM public.outbox")


async def test_a_payload_at_the_limit_is_taken(store, sql):
    job_id = await one(sql, "SELECT rota.enqueue('email', jsonb_build_object('text', repeat('x', 262132)))")
    await sql.commit()

    assert len((await read(store, job_id)).payload_json) == 262_144


# Keys


async def test_the_same_key_gives_the_same_job(store, sql):
    first = await one(sql, """SELECT rota.enqueue('email', '{"to": "ann"}', key => 'order:1')""")
    await sql.commit()
    second = await one(sql, """SELECT rota.enqueue('email', '{"to": "ann"}', key => 'order:1')""")
    elsewhere = await one(
        sql, """SELECT rota.enqueue('email', '{"to": "ann"}', key => 'order:1', tenant => 'acme')"""
    )
    await sql.commit()

    assert second == first
    assert elsewhere != first
    assert {job.id for job in await store.find(JobFilter())} == {first, elsewhere}


async def test_the_same_key_with_other_arguments_is_an_error_that_names_the_job(sql):
    first = await one(sql, """SELECT rota.enqueue('email', '{"to": "ann"}', key => 'order:1')""")
    await sql.commit()

    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        await sql.execute("""SELECT rota.enqueue('email', '{"to": "bob"}', key => 'order:1')""")

    diag = refused.value.diag
    assert diag.message_primary == (
        f"rota: the key 'order:1' belongs to job {first}, which was enqueued with other arguments"
    )
    assert diag.message_hint == "Use another key for other work."


async def test_python_and_sql_share_their_keys(store, sql):
    job = a_job("email", {"to": "ann"}, key="order:1", unique_key="ann")
    await store.enqueue([job])

    assert await one(sql, """SELECT rota.enqueue('email', '{"to": "ann"}', key => 'order:1')""") == job.id
    assert await one(sql, "SELECT rota.enqueue('email', unique_key => 'ann')") == job.id


async def test_a_unique_key_holds_until_its_job_starts(store, sql):
    first = await one(sql, "SELECT rota.enqueue('email', unique_key => 'ann')")
    assert await one(sql, "SELECT rota.enqueue('email', unique_key => 'ann')") == first
    assert await one(sql, "SELECT rota.enqueue('report', unique_key => 'ann')") != first
    await sql.commit()
    await claim(store)

    assert await one(sql, "SELECT rota.enqueue('email', unique_key => 'ann')") != first


@pytest.mark.req("W10")
async def test_serial_jobs_share_their_gate_with_those_from_python(store, sql):
    named = await one(sql, "SELECT rota.enqueue('report', serial => '7', tenant => 'acme')")
    by_argument = await one(sql, """SELECT rota.enqueue('email', '{"account": 7}', tenant => 'acme')""")
    await sql.commit()

    assert (await read(store, named)).gate == (await read(store, by_argument)).gate == "serial:acme:7"
    assert len(await claim(store)) == 1


# Transactions and triggers


async def test_a_rollback_leaves_neither_job_nor_key(store, sql):
    await sql.execute("SELECT rota.enqueue('email', key => 'order:1', unique_key => 'ann')")
    await sql.rollback()

    assert await store.find(JobFilter()) == []
    assert await one(sql, "SELECT count(*) FROM rota.keys") == 0


async def test_a_trigger_stores_a_job_for_each_row_that_is_committed(store, sql):
    await sql.execute("CREATE TABLE public.orders (id integer, customer text)")
    await sql.execute(
        "CREATE FUNCTION public.tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM rota.enqueue('email', jsonb_build_object('to', NEW.customer), key => 'order:' || NEW.id);"
        " RETURN NEW; END $$"
    )
    await sql.execute(
        "CREATE TRIGGER tell AFTER INSERT ON public.orders FOR EACH ROW EXECUTE FUNCTION public.tell()"
    )
    await sql.execute("INSERT INTO public.orders VALUES (1, 'ann'), (2, 'bob'), (2, 'bob')")
    await sql.commit()
    await sql.execute("INSERT INTO public.orders VALUES (3, 'eve')")
    await sql.rollback()

    jobs = await claim(store)
    assert sorted((job.key, job.payload["to"]) for job in jobs) == [("order:1", "ann"), ("order:2", "bob")]


async def test_a_search_path_without_rota_or_with_tables_of_the_same_names_does_no_harm(store, sql):
    await sql.execute("CREATE SCHEMA shop")
    for table in ("jobs", "keys", "tasks", "finished_jobs"):
        await sql.execute(f"CREATE TABLE shop.{table} (id integer)")
    await sql.execute("SET search_path = shop")

    job_id = await one(sql, "SELECT rota.enqueue('email', key => 'order:1')")
    await sql.commit()

    assert (await read(store, job_id)).key == "order:1"


# rota.enqueue_jobs()


async def answers(
    connection: psycopg.AsyncConnection[Any], jobs: list[dict[str, Any]]
) -> list[tuple[Any, ...]]:
    cursor = await connection.execute(
        'SELECT "position", id, stored FROM rota.enqueue_jobs(%s::text::jsonb)', [json.dumps(jobs)]
    )
    return await cursor.fetchall()


async def test_duplicates_of_every_kind_are_answers_and_never_abort_the_caller(store, sql):
    twice = str(new_id())
    jobs = [
        {"id": twice, "task": "email"},
        {"id": twice, "task": "email"},
        {"task": "email", "key": "order:1", "payload": {"to": "ann"}},
        {"task": "email", "key": "order:1", "payload": {"to": "ann"}},
        {"task": "email", "key": "order:1", "payload": {"to": "bob"}},
        {"task": "email", "unique_key": "u"},
        {"task": "email", "unique_key": "u"},
        {"task": "email", "unique_key": "u", "on_duplicate": "reject"},
        {"task": "email", "unique_key": "u", "on_duplicate": "replace", "payload": {"a": 1}},
        {"task": "email", "unique_key": "u", "on_duplicate": "merge", "payload": {"b": 2}},
        {"task": "email", "unique_key": "u", "on_duplicate": "reschedule", "delay": 60},
    ]

    rows = await answers(sql, jobs)
    await sql.commit()

    assert [(row[0], row[2]) for row in rows] == [
        (1, "created"),
        (2, "created"),
        (3, "created"),
        (4, "duplicate"),
        (5, "conflict"),
        (6, "created"),
        (7, "duplicate"),
        (8, "rejected"),
        (9, "replaced"),
        (10, "merged"),
        (11, "rescheduled"),
    ]
    assert [rows[0][1], *{row[1] for row in rows[2:5]}] == [UUID(twice), rows[2][1]]
    unique = await read(store, rows[5][1])
    assert unique.payload == {"a": 1, "b": 2}
    assert unique.run_at - unique.created_at == timedelta(seconds=60)
    assert len(await store.find(JobFilter())) == 3


async def test_the_same_ids_again_are_answered_alike_even_when_the_jobs_ended(store, sql):
    job = await a_running_job(store)
    await store.settle([completed(job)])

    assert await answers(sql, [{"id": str(job.id), "task": "email"}]) == [(1, job.id, "created")]
    await sql.commit()
    assert (await read(store, job)).state is State.COMPLETED


async def test_no_jobs_is_no_error(sql):
    assert await answers(sql, []) == []


# rota.new_id()


async def test_ids_made_by_the_server_are_ordered_by_time_and_of_version_seven(sql):
    ids = []
    for _ in range(20):
        ids.append(await one(sql, "SELECT rota.new_id()"))
        await one(sql, "SELECT pg_sleep(0.002)")
    now = time.time() * 1000

    assert {(made.version, made.variant) for made in ids} == {(7, "specified in RFC 4122")}
    assert ids == sorted(ids)
    assert abs((ids[-1].int >> 80) - now) < 60_000
    assert len(set(await everything(sql, "SELECT rota.new_id() FROM generate_series(1, 5000)"))) == 5000


async def everything(connection: psycopg.AsyncConnection[Any], question: str) -> list[Any]:
    return [row[0] for row in await (await connection.execute(question)).fetchall()]


# The views


async def test_all_jobs_are_one_list_whatever_became_of_them(store, sql):
    waiting = a_job(delay=60)
    await store.enqueue([waiting])
    done, dead, gone, running = [await a_running_job(store) for _ in range(4)]
    await store.settle(
        [completed(done, {"n": 1}), failed(dead, ErrorClass.NON_RETRYABLE), cancelled(gone, "no")]
    )

    cursor = sql.cursor(row_factory=dict_row)
    await cursor.execute("SELECT id, state, result, error_message, review, reason FROM rota.all_jobs")
    rows = {row.pop("id"): tuple(row.values()) for row in await cursor.fetchall()}

    assert rows == {
        waiting.id: ("pending", None, None, None, None),
        running.id: ("running", None, None, None, None),
        done.id: ("completed", {"n": 1}, None, None, None),
        dead.id: ("dead", None, "boom", "pending_review", None),
        gone.id: ("cancelled", None, None, None, "no"),
    }


async def test_attempts_show_those_that_failed_and_the_one_that_did_not(store, sql):
    first = await a_running_job(store, delay=0)
    await store.settle([failed(first, now=datetime.now(UTC) - timedelta(hours=1))])
    [again] = await claim(store)
    await store.settle([completed(again)])

    cursor = await sql.execute(
        "SELECT attempt, version, outcome, error_type, message, session_id, started_at IS NOT NULL,"
        " ended_at IS NOT NULL FROM rota.attempts WHERE job_id = %s ORDER BY attempt",
        [first.id],
    )

    assert await cursor.fetchall() == [
        (1, first.version, "retry", "ValueError", "boom", first.session_id, True, True),
        (2, again.version, "completed", None, None, again.session_id, True, True),
    ]
