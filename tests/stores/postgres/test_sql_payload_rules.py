"""rota.enqueue() asks of a payload what the app asks of it; and the table itself can be told to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

import rota.stores.postgres
from build import claim, read
from rota import PayloadInvalid, RequiredMissing, Rota
from rota._core import sensitive
from rota.stores.contract import JobFilter
from sensitive_samples import FOUND, LEFT_ALONE

CORRELATION = "550e8400-e29b-41d4-a716-446655440000"
GOOD = {
    "tenant_id": 7,
    "correlation_id": CORRELATION,
    "idempotency_key": "k-1",
    "connection_id": 456,
    "note": None,
}
MIGRATION = Path(rota.stores.postgres.__file__).with_name("migrations") / "0007_payload_rules.sql"


@pytest.fixture
async def app(store):
    app = Rota(store=store, rules="strict")

    @app.task(category="ingestion", serial="connection_id")
    def fetch(
        tenant_id: int | None = None,
        correlation_id: str | None = None,
        idempotency_key: str | None = None,
        connection_id: int | None = None,
        note: Any = None,
    ) -> None: ...

    @app.task(category="notifications")
    def notify(recipient_id: int | None = None, recipient_ids: list[int] | None = None) -> None: ...

    @app.task
    def bare() -> None: ...

    free = Rota(store=store)

    @free.task
    def anything(**rest: Any) -> None: ...

    await store.publish([task.spec() for task in (*app.tasks.values(), *free.tasks.values())])
    return app


@pytest.fixture
async def sql(app, fresh_database):
    async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection:
        connection.prepare_threshold = None
        yield connection


async def enqueue(sql: Any, task: str, payload: dict[str, Any], **options: Any) -> Any:
    named = "".join(f", {name} => %({name})s" for name in options)
    row = await (
        await sql.execute(
            f"SELECT rota.enqueue(%(task)s, %(payload)s::jsonb{named})",
            {"task": task, "payload": json.dumps(payload), **options},
        )
    ).fetchone()
    return row[0]


@pytest.mark.req("W3")
async def test_a_job_from_sql_carries_what_one_from_code_carries(store, app, sql):
    by_sql = await read(store, await enqueue(sql, "fetch", GOOD))
    by_code = app.tasks["fetch"].prepare((), GOOD)

    for name in ("tenant", "correlation_id", "key", "gate", "category", "payload_version"):
        assert getattr(by_sql, name) == getattr(by_code, name), name
    said = await enqueue(
        sql, "fetch", {"connection_id": 1}, tenant="acme", correlation_id=CORRELATION, key="k-1"
    )
    job = await read(store, said)
    assert (job.tenant, job.correlation_id, job.key, job.gate) == (
        "acme",
        CORRELATION,
        "k-1",
        "serial:acme:1",
    )


@pytest.mark.req("W4", "W9")
@pytest.mark.parametrize(
    ("task", "changes", "said"),
    [
        ("fetch", {"tenant_id": None}, "fetch cannot be enqueued: tenant_id is missing"),
        ("fetch", {"tenant_id": "acme"}, "fetch cannot be enqueued: tenant_id must be a whole number"),
        ("fetch", {"correlation_id": None}, "fetch cannot be enqueued: correlation_id is missing"),
        ("fetch", {"correlation_id": "x"}, "fetch cannot be enqueued: correlation_id must be a UUID"),
        ("fetch", {"idempotency_key": None}, "fetch cannot be enqueued: idempotency_key is missing"),
        (
            "fetch",
            {"idempotency_key": " "},
            "fetch cannot be enqueued: idempotency_key must be a text of 1 to",
        ),
        ("fetch", {"connection_id": None}, "fetch cannot be enqueued: connection_id is missing"),
        ("fetch", {"connection_id": ""}, "fetch cannot be enqueued: connection_id is missing"),
        ("notify", {}, "notify cannot be enqueued: recipient_id or recipient_ids is missing"),
        (
            "notify",
            {"recipient_ids": []},
            "notify cannot be enqueued: recipient_id or recipient_ids is missing",
        ),
        ("bare", {}, "bare cannot be enqueued: a category is missing"),
        (
            "fetch",
            {"note": {"password": "hunter2"}},
            "fetch cannot be enqueued: note.password looks like a secret",
        ),
    ],
)
async def test_what_the_code_refuses_sql_refuses(store, app, sql, task, changes, said):
    payload = {name: value for name, value in (GOOD | changes).items() if value is not None}

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        await enqueue(sql, task, payload)
    assert refused.value.diag.message_primary.startswith(f"rota: {said}")
    assert refused.value.diag.message_hint
    assert "hunter2" not in str(refused.value)
    with pytest.raises(PayloadInvalid):
        app.tasks[task].prepare((), payload if task == "fetch" else {})
    assert await store.find(JobFilter()) == []


async def test_an_option_must_not_contradict_the_payload(sql):
    with pytest.raises(
        psycopg.errors.CheckViolation, match="tenant_id is one thing by its argument and another"
    ):
        await enqueue(sql, "fetch", GOOD, tenant="acme")


async def test_of_a_task_without_rules_nothing_is_asked(store, sql):
    job = await read(store, await enqueue(sql, "anything", {"password": "hunter2", "tenant_id": 7}))

    assert (job.tenant, job.key, job.correlation_id) == (None, None, None)


@pytest.mark.req("W5")
async def test_sql_finds_what_python_finds(sql):
    for payload, said in FOUND:
        row = await (await sql.execute("SELECT rota.sensitive(%s::jsonb)", [json.dumps(payload)])).fetchone()
        assert row[0] == said, payload
    for payload in LEFT_ALONE:
        row = await (await sql.execute("SELECT rota.sensitive(%s::jsonb)", [json.dumps(payload)])).fetchone()
        assert row[0] is None, payload
    row = await (
        await sql.execute("""SELECT rota.sensitive('{"a": {"token": "x"}, "pwd": "y"}', '{a.token,pwd}')""")
    ).fetchone()
    assert row[0] is None


def test_the_patterns_in_sql_are_those_in_python():
    text = MIGRATION.read_text()
    names = ("SECRET_NAME", "NUMBER_NAME", "CONTENT_NAME", "MAYBE_CONTENT_NAME", "PRIVATE_KEY", "JWT", "TOKEN",
             "URL_PASSWORD", "CARD_BRAND", "MAIL_HEADER", "DOCUMENT", "BASE64")  # fmt: skip

    assert [name for name in names if f"'{getattr(sensitive, name)}'" not in text] == []
    # PostgreSQL answers with the group where there is one, so this pattern has none there.
    assert sensitive.CARD.replace("([ -]", "(?:[ -]") in text
    assert re.search(rf"length\(part #>> '{{}}'\) >= {sensitive.MAYBE_CONTENT_FROM}\b", text)
    assert f"length(said) < {sensitive.SHORTEST} " in text
    assert f"length(said) >= {sensitive.BASE64_FROM} " in text
    assert f")) >= {sensitive.MAIL_HEADERS}\n" in text


@pytest.mark.req("W4")
async def test_the_table_itself_can_be_told_to_refuse_jobs_that_lack_them(store, sql):
    free = Rota(store=store)

    @free.task(category="export")
    def work() -> None: ...

    old = await work.enqueue()
    await sql.execute("SELECT rota.enforce_rules()")

    with pytest.raises(RequiredMissing) as refused:
        await work.using(tenant="acme", key="k").enqueue()
    assert str(refused.value) == (
        "this database takes only jobs with a tenant, a correlation_id, a key and a category (rota.enforce_rules), and "
        'this one lacks some of them. Nothing was stored. Give them by using(); Rota(rules="strict") says which ones '
        "are missing."
    )
    with pytest.raises(RequiredMissing):
        await work.using(tenant="acme", correlation_id=CORRELATION).enqueue()
    with pytest.raises(RequiredMissing):
        await work.enqueue_many([()] * 300)
    with pytest.raises(psycopg.errors.CheckViolation, match="jobs_carry_what_rules_ask"):
        await enqueue(sql, "anything", {})
    assert [job.id for job in await store.find(JobFilter())] == [old.id]

    assert (await work.using(tenant="a", key="k", correlation_id=CORRELATION).enqueue()).created
    assert len(await claim(store)) == 2  # what was there before runs on
    await sql.execute("SELECT rota.enforce_rules(false)")
    assert (await work.enqueue()).created
