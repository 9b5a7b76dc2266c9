"""Rota(rules="strict"): what every job must carry and must not; and what an app without rules is warned of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest

from build import read
from rota import (
    PayloadInvalid,
    PayloadRules,
    RequiredMissing,
    Rota,
    SensitiveContent,
    UnknownCategory,
    context,
    every,
)
from rota._core.payload import PayloadWarning
from rota.errors import ConfigError
from rota.stores.contract import JobFilter
from rota.stores.memory import MemoryStore

CORRELATION = "550e8400-e29b-41d4-a716-446655440000"
TERMS = {"tenant": "acme", "correlation_id": CORRELATION, "key": "k-1"}


@dataclass
class Login:
    user: str
    password: str


@pytest.fixture
def app(store):
    return Rota(store=store, rules="strict")


@pytest.fixture
def fetch(app):
    @app.task(category="ingestion")
    def fetch(connection_id: int, note: Any = None) -> None: ...

    return fetch


@pytest.fixture
def fetch_by_payload(app):
    @app.task(category="ingestion", serial="connection_id")
    def fetch_by_payload(
        tenant_id: int, correlation_id: str, idempotency_key: str, connection_id: int
    ) -> None: ...

    return fetch_by_payload


async def nothing_stored(app: Rota) -> bool:
    return list(await app.store.find(JobFilter())) == []


@pytest.mark.req("W3")
async def test_a_job_that_carries_everything_is_stored_with_it(app, fetch):
    job = await read(app.store, (await fetch.using(**TERMS).enqueue(456)).id)

    assert (job.tenant, job.correlation_id, job.key, job.category) == (
        "acme",
        CORRELATION,
        "k-1",
        "ingestion",
    )
    assert (job.payload, job.payload_version) == ({"connection_id": 456}, "1.0")


@pytest.mark.req("W3")
async def test_what_the_arguments_say_becomes_the_jobs_own(app, fetch_by_payload):
    handle = await fetch_by_payload.enqueue(7, CORRELATION, "k-1", connection_id=456)
    job = await read(app.store, handle.id)

    assert (job.tenant, job.correlation_id, job.key, job.gate) == ("7", CORRELATION, "k-1", "serial:7:456")
    again = await fetch_by_payload.enqueue(7, CORRELATION, "k-1", connection_id=456)
    assert (again.id, again.created) == (handle.id, False)
    assert (await fetch_by_payload.enqueue(8, CORRELATION, "k-1", connection_id=456)).created


@pytest.mark.req("W4", "W38")
@pytest.mark.parametrize(
    ("lacking", "argument"),
    [("tenant", "tenant_id"), ("correlation_id", "correlation_id"), ("key", "idempotency_key")],
)
async def test_a_job_that_lacks_one_of_the_three_is_refused_by_name(app, fetch, lacking, argument):
    terms = {name: value for name, value in TERMS.items() if name != lacking}

    with pytest.raises(RequiredMissing) as refused:
        await fetch.using(**terms).enqueue(456)

    assert str(refused.value) == (
        f"fetch cannot be enqueued: {argument} is missing; pass using({lacking}=…), or give the task an argument "
        f"{argument}."
    )
    assert refused.value.fields == (argument,)
    assert await nothing_stored(app)


@pytest.mark.req("W4")
async def test_everything_that_is_missing_is_said_at_once(app):
    @app.task
    def bare() -> None: ...

    with pytest.raises(RequiredMissing) as refused:
        await bare.enqueue()

    assert refused.value.fields == ("tenant_id", "correlation_id", "idempotency_key", "category")
    assert await nothing_stored(app)


@pytest.mark.req("W3")
@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"correlation_id": "user-action-123"}, "correlation_id must be a UUID, not 'user-action-123'"),
        ({"key": " "}, "idempotency_key must be a text that is not empty, not ' '"),
    ],
)
async def test_what_is_given_must_be_what_it_says(app, fetch, terms, said):
    with pytest.raises(RequiredMissing, match=said):
        await fetch.using(**(TERMS | terms)).enqueue(456)
    assert await nothing_stored(app)


async def test_arguments_and_options_must_not_contradict_each_other(app, fetch_by_payload):
    with pytest.raises(
        RequiredMissing, match="tenant_id is 7 by its argument and 'acme' by tenant=; give one"
    ):
        await fetch_by_payload.using(tenant="acme").enqueue(7, CORRELATION, "k", connection_id=1)
    assert (await fetch_by_payload.using(tenant="7").enqueue(7, CORRELATION, "k", connection_id=1)).created


@pytest.mark.req("W9", "W38")
async def test_a_job_without_the_references_of_its_category_is_refused(app, fetch):
    @app.task(category="notifications")
    def notify(recipient_id: int | None = None, recipient_ids: list[int] | None = None) -> None: ...

    with pytest.raises(
        RequiredMissing, match="notify cannot be enqueued: recipient_id or recipient_ids is missing"
    ):
        await notify.using(**TERMS).enqueue()
    with pytest.raises(RequiredMissing, match="fetch cannot be enqueued: document_id is missing"):
        await fetch.using(**TERMS, category="documents").enqueue(1)
    assert await nothing_stored(app)
    assert (await notify.using(**TERMS).enqueue(recipient_ids=[1, 2])).created


@pytest.mark.req("W1")
async def test_an_unknown_category_is_refused_at_the_task_and_at_the_job(store):
    app = Rota(store=store)  # with rules or without

    with pytest.raises(
        UnknownCategory, match="there is no category 'notification'; did you mean 'notifications'"
    ):
        app.task(name="x", category="notification")(lambda: None)

    @app.task
    def work() -> None: ...

    with pytest.raises(UnknownCategory, match="there is no category 'billing'"):
        await work.using(category="billing").enqueue()
    assert await nothing_stored(app)
    app.category("billing", "invoices")
    assert (await read(store, (await work.using(category="billing").enqueue()).id)).category == "billing"


@pytest.mark.req("W1", "W9")
async def test_a_category_of_ones_own_has_its_own_references(app):
    app.category("billing", refs=["invoice_id"])

    @app.task(category="billing")
    def bill(**ids: int) -> None: ...

    with pytest.raises(RequiredMissing, match="invoice_id is missing"):
        await bill.using(**TERMS).enqueue(account_id=1)
    assert (await bill.using(**TERMS).enqueue(invoice_id=1)).created


EXAMPLES = {
    "ingestion": ("email_ingestion_fetch", "email_ingestion_parse"),
    "sync": ("calendar_sync_pull", "calendar_sync_push"),
    "recurrence": ("recurrence_period_generate", "recurrence_work_create"),
    "orchestration": ("orchestration_step_execute",),
    "documents": ("document_scan", "document_classify"),
    "notifications": ("notification_email_send", "notification_inapp_create"),
    "export": ("firm_export", "firm_purge"),
    "maintenance": ("session_expire", "data_archival"),
}


@pytest.mark.req("W1", "W2", "W7")
async def test_the_tasks_of_every_category_are_stored_with_it_and_their_version(app):
    def work(**refs: int) -> None: ...

    for category, names in EXAMPLES.items():
        refs = {choice[0]: 7 for choice in app.categories[category].refs}
        for number, name in enumerate(names):
            version = {"payload_version": "2.1"} if number else {}
            task = app.task(name=name, category=category, **version)(work)
            handle = await task.using(**TERMS | {"key": name}).enqueue(**refs)
            job = await read(app.store, handle.id)
            assert (job.task, job.category) == (name, category)
            assert job.payload_version == ("2.1" if number else "1.0")


@pytest.mark.req("W5", "W38")
@pytest.mark.parametrize(
    ("note", "said"),
    [
        ({"login": {"password": "hunter2"}}, "note.login.password looks like a secret"),
        (["x", "card 4111 1111 1111 1111"], r"note\[1\] looks like a card number"),
        ({"email_body": "Dear Bob"}, "note.email_body looks like the content of a mail or document"),
    ],
    ids=str,
)
async def test_a_payload_with_secrets_or_content_is_refused_wherever_they_are(app, fetch, note, said):
    with pytest.raises(SensitiveContent, match=said) as refused:
        await fetch.using(**TERMS).enqueue(456, note=note)

    assert "hunter2" not in str(refused.value)
    assert refused.value.paths[0].startswith("note")
    assert await nothing_stored(app)


async def test_one_wrong_row_of_many_is_named_and_none_is_stored(app, fetch_by_payload):
    rows = [
        {"tenant_id": 7, "correlation_id": CORRELATION, "idempotency_key": f"k{n}", "connection_id": n}
        for n in (1, 2)
    ]

    with pytest.raises(
        RequiredMissing, match="row 1: fetch_by_payload cannot be enqueued: correlation_id must"
    ) as no:
        await fetch_by_payload.enqueue_many([rows[0], rows[1] | {"correlation_id": "x"}])

    assert no.value.fields == ("correlation_id",)
    assert await nothing_stored(app)
    made = await fetch_by_payload.enqueue_many([*rows, rows[0]])
    assert [handle.created for handle in made] == [True, True, False]


async def test_what_surrounds_a_call_counts_too(app, fetch):
    with context(tenant="acme", correlation_id=CORRELATION):
        job = await read(app.store, (await fetch.using(key="k").enqueue(1)).id)

    assert (job.tenant, job.correlation_id) == ("acme", CORRELATION)


async def test_jobs_of_a_schedule_belong_to_the_system(app):
    """Their tick is their key, they start a correlation, and may do without a tenant; the rest holds."""

    @app.task(category="maintenance")
    def clean(token: str | None = None) -> None: ...

    app.schedule(every("1h"))(clean)
    app.schedule(every("1h"), name="leaky")(clean, token="abc")

    app.schedules["clean"].spec()
    with pytest.raises(
        PayloadInvalid, match=r"schedule 'leaky' at .* cannot tick: clean cannot be enqueued: token"
    ):
        app.schedules["leaky"].spec()


async def test_rules_can_be_chosen_one_by_one(store):
    app = Rota(
        store=store,
        rules=PayloadRules(correlation_id=False, key=False, category=False, refs=False, allow=("token",)),
    )

    @app.task
    def work(token: str = "", secret: str = "") -> None: ...

    with pytest.raises(RequiredMissing) as refused:
        await work.enqueue()
    assert refused.value.fields == ("tenant_id",)
    assert (await work.using(tenant="acme").enqueue(token="abc")).created
    with pytest.raises(SensitiveContent):
        await work.using(tenant="acme").enqueue(secret="abc")


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("strikt", 'Rota(rules=\'strikt\') is not known. Choose "strict", "warn" (the default) or "off"'),
        ({"tenant": True}, "is not known"),
    ],
    ids=str,
)
def test_rules_that_are_not_known_are_refused(rules, said):
    with pytest.raises(ConfigError) as refused:
        Rota(store=MemoryStore(), rules=rules)
    assert said in str(refused.value)


def test_rules_that_make_no_sense_are_refused():
    with pytest.raises(ConfigError, match="PayloadRules\\(sensitive='no'\\) is not known"):
        PayloadRules(sensitive="no")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Write allow=\\('token',\\)"):
        PayloadRules(allow="token")  # type: ignore[arg-type]


# Without rules


@pytest.mark.req("W5")
async def test_an_app_without_rules_is_warned_once_a_task_of_what_its_arguments_carry(memory_app):
    @memory_app.task
    def login(user: str, password: str) -> None: ...

    @memory_app.task
    def nested(login: Login) -> None: ...

    with pytest.warns(
        PayloadWarning, match="a job of login carries .*: password looks like a secret"
    ) as heard:
        await login.enqueue("ann", "hunter2")
    assert "hunter2" not in str(heard[0].message)
    await login.enqueue("ann", "hunter2")  # a second warning would fail the test
    with pytest.warns(PayloadWarning, match="login.password looks like a secret"):
        await nested.enqueue(Login("ann", "x"))


async def test_an_app_without_rules_asks_for_nothing_and_looks_at_nothing_else(memory_app):
    @memory_app.task
    def work(note: str, token_count: int = 0) -> None: ...

    assert work._looked_at is False
    assert (await work.enqueue("4111 1111 1111 1111")).created


async def test_the_warning_can_be_switched_off():
    app = Rota(store=MemoryStore(), rules="off")

    @app.task
    def login(password: str) -> None: ...

    await login.enqueue("hunter2")
    assert login._looked_at is False


async def test_an_error_never_quotes_a_secret(memory_app):
    @memory_app.task
    def login(user: int, password: str) -> None: ...

    with pytest.raises(PayloadInvalid) as refused:
        await login.enqueue(user="token=abc", password=["hunter2"])  # type: ignore[arg-type]
    assert "hunter2" not in str(refused.value)
    assert "abc" not in str(refused.value)
    with pytest.raises(PayloadInvalid) as refused:
        await login.enqueue_many(["password=hunter2"])
    assert "hunter2" not in str(refused.value)


def test_a_correlation_may_be_given_as_text_of_any_case():
    app = Rota(store=MemoryStore(), rules="strict")

    @app.task(category="export")
    def work() -> None: ...

    job = work.prepare((), {}, {"tenant": "a", "key": "k", "correlation_id": str(uuid4()).upper()})
    assert job.correlation_id is not None
