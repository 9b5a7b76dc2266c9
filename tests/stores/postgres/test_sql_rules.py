"""rota.enqueue() obeys what a task says of its keys: SQL makes the job that the task's own code makes, or refuses."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from build import claim, read
from rota import KeyConflict, NotUnique, Rota, Unique
from rota.stores.contract import JobFilter

CALL = "SELECT rota.enqueue(%s, %s::jsonb)"


@pytest.fixture
async def app(store):
    app = Rota(store=store)

    @app.task(key="order", tags=["shop"])
    def invoice(order: str, copies: int = 1) -> None: ...

    @app.task(unique=Unique("site", until="finished", on_duplicate="merge"), serial="site")
    def rebuild(site: int = 7, full: bool = False) -> None: ...

    @app.task(unique=Unique("site", until="10m", on_duplicate="reject"))
    def crawl(site: str | None = None) -> None: ...

    @app.task(key=lambda order: f"k:{order}", unique=lambda order: order, serial=lambda order: order)
    def coded(order: str) -> None: ...

    await store.publish([task.spec() for task in app.tasks.values()])
    return app


@pytest.fixture
async def sql(app, fresh_database):
    async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection:
        connection.prepare_threshold = None
        yield connection


async def from_sql(sql: Any, task: str, payload: dict[str, Any]) -> Any:
    row = await (await sql.execute(CALL, [task, json.dumps(payload)])).fetchone()
    return row[0]


SAME = [
    ("invoice", {"order": "A-1"}),
    ("invoice", {"order": "A-1", "copies": 2}),
    ("rebuild", {"site": 12}),
    ("rebuild", {}),  # the default is the key
    ("crawl", {"site": "a"}),
    ("crawl", {"site": None}),  # no key at all
    ("crawl", {}),
]


@pytest.mark.parametrize(("task", "payload"), SAME, ids=str)
async def test_a_job_from_sql_has_the_keys_and_tags_of_one_from_code(store, app, sql, task, payload):
    by_sql = await read(store, await from_sql(sql, task, payload))
    by_code = app.tasks[task].prepare((), payload)

    for name in ("key", "unique_key", "gate", "tags", "queue", "priority", "max_attempts", "payload_version"):
        assert getattr(by_sql, name) == getattr(by_code, name), name
    if by_code.unique_key is not None:
        assert by_sql.unique_scope == by_code.unique_scope


async def test_the_same_request_from_sql_and_from_code_is_one_job(app, sql):
    handle = await app.tasks["invoice"].enqueue("A-1")
    assert await from_sql(sql, "invoice", {"order": "A-1"}) == handle.id
    other = await from_sql(sql, "invoice", {"order": "A-2"})

    again = await app.tasks["invoice"].enqueue("A-2")
    assert (again.id, again.created) == (other, False)
    with pytest.raises(KeyConflict):
        await app.tasks["invoice"].enqueue("A-2", copies=3)


async def test_scope_window_and_policy_of_a_unique_key_hold_for_sql_too(store, app, sql):
    first = await from_sql(sql, "rebuild", {"site": 12})
    assert await from_sql(sql, "rebuild", {"site": 12, "full": True}) == first
    assert (await read(store, first)).payload == {"site": 12, "full": True}
    await claim(store)
    assert await from_sql(sql, "rebuild", {"site": 12}) == first  # until finished: it runs

    crawl = await from_sql(sql, "crawl", {"site": "a"})
    await claim(store)
    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        await from_sql(sql, "crawl", {"site": "a"})
    assert (
        refused.value.diag.message_primary == f"rota: a job with the unique key 'a' exists already: {crawl}"
    )
    with pytest.raises(NotUnique):
        await app.tasks["crawl"].enqueue("a")


async def test_what_the_caller_says_of_a_key_goes_before_the_rule_and_an_empty_text_means_none(store, sql):
    row = await (
        await sql.execute(
            "SELECT rota.enqueue('rebuild', '{\"site\": 12}', unique_key => 'mine', serial => '')"
        )
    ).fetchone()
    job = await read(store, row[0])
    assert (job.unique_key, job.unique_scope, job.gate) == ("mine", "started", None)

    row = await (
        await sql.execute("SELECT rota.enqueue('invoice', '{\"order\": \"A-1\"}', key => '')")
    ).fetchone()
    assert (await read(store, row[0])).key is None


async def test_a_key_that_a_function_finds_is_refused_unless_the_caller_gives_it(store, sql):
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        await from_sql(sql, "coded", {"order": "A-1"})
    diag = refused.value.diag
    assert (
        diag.message_primary == "rota: coded finds its key by a function of its code, which SQL cannot call"
    )
    assert diag.message_hint == "Pass key => '…' (or '' for none), or enqueue it from its code."
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="finds its unique key by a function"):
        await sql.execute("SELECT rota.enqueue('coded', '{\"order\": \"A\"}', key => 'k', serial => 's')")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="finds its serial by a function"):
        await sql.execute("SELECT rota.enqueue('coded', '{\"order\": \"A\"}', key => 'k', unique_key => 'u')")
    assert await store.find(JobFilter()) == []

    row = await (
        await sql.execute(
            "SELECT rota.enqueue('coded', '{\"order\": \"A\"}', key => 'k', unique_key => 'u', serial => '')"
        )
    ).fetchone()
    job = await read(store, row[0])
    assert (job.key, job.unique_key, job.gate) == ("k", "u", None)


@pytest.mark.parametrize(("value", "why"), [("", "empty"), ("x" * 1001, "too long")])
async def test_an_argument_that_cannot_be_a_key_is_refused(store, sql, value, why):
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        await from_sql(sql, "invoice", {"order": value})

    assert refused.value.diag.message_primary == (
        f"rota: the key of invoice is its argument 'order', and that is {why}"
    )
    assert await store.find(JobFilter()) == []
