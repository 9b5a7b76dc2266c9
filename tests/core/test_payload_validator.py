"""PayloadValidator: what DOC-20 asks of a payload, checked and made."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from rota import PayloadInvalid, PayloadValidator
from rota._core.categories import STANDARD, Categories
from rota._core.payload import PayloadWarning
from rota.errors import TaskError, UnknownCategory

GOOD = {
    "tenant_id": 123,
    "correlation_id": "550e8400-e29b-41d4-a716-446655440000",
    "idempotency_key": "email_fetch_conn_456_msg_789",
    "connection_id": 456,
    "external_message_id": "msg_789",
}

NEEDS = {
    "ingestion": "connection_id is missing",
    "sync": "connection_id is missing",
    "recurrence": "recurrence_rule_id is missing",
    "orchestration": "orchestration_execution_id is missing",
    "documents": "document_id is missing",
    "notifications": "recipient_id or recipient_ids is missing",
    "export": None,
    "maintenance": None,
}


def without(*names: str, **more: object) -> dict:
    return {name: value for name, value in GOOD.items() if name not in names} | more


@pytest.mark.req("W8")
def test_the_example_of_the_rules_is_valid():
    assert PayloadValidator.validate_payload(
        payload=GOOD, category="ingestion", additional_required=["connection_id"]
    ) == (True, [])


@pytest.mark.req("W3", "W4", "W38")
@pytest.mark.parametrize("name", ["tenant_id", "correlation_id", "idempotency_key"])
def test_each_of_the_three_must_be_there(name):
    assert PayloadValidator.validate_payload(without(name), "sync") == (False, [f"{name} is missing"])
    assert PayloadValidator.validate_payload(without(**{name: None}), "sync") == (
        False,
        [f"{name} is missing"],
    )


@pytest.mark.req("W3")
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("tenant_id", "acme", "tenant_id must be a whole number, not 'acme'"),
        ("tenant_id", True, "tenant_id must be a whole number, not True"),
        ("correlation_id", "abc", "correlation_id must be a UUID, not 'abc'"),
        ("correlation_id", 7, "correlation_id must be a UUID, not 7"),
        ("idempotency_key", " ", "idempotency_key must be a text that is not empty, not ' '"),
        ("idempotency_key", 7, "idempotency_key must be a text that is not empty, not 7"),
        (
            "idempotency_key",
            "k" * 1001,
            "idempotency_key has more than 1000 bytes; use a hash or an id of it",
        ),
        ("payload_version", 2, 'payload_version must be a text such as "1.0", not 2'),
        ("connection_id", "", "connection_id must be an id (a text or a whole number) or a list of ids"),
    ],
)
def test_each_must_be_what_it_says(name, value, said):
    assert PayloadValidator.validate_payload(without(**{name: value}), "sync") == (False, [said])


@pytest.mark.req("W1", "W9", "W38")
@pytest.mark.parametrize(("category", "said"), NEEDS.items())
def test_each_category_has_its_references(category, said):
    errors = [] if said is None else [said]

    assert PayloadValidator.validate_payload(without("connection_id"), category) == (not errors, errors)


@pytest.mark.req("W9")
def test_one_recipient_or_many_will_do():
    assert PayloadValidator.validate_payload(without(recipient_id=7), "notifications")[0]
    assert PayloadValidator.validate_payload(without(recipient_ids=[7, "b"]), "notifications")[0]
    assert not PayloadValidator.validate_payload(without(recipient_ids=[]), "notifications")[0]


@pytest.mark.req("W1")
def test_an_unknown_category_is_refused_with_the_one_that_was_meant():
    assert PayloadValidator.validate_payload(GOOD, "ingest") == (
        False,
        [str(UnknownCategory("ingest", list(NEEDS)))],
    )
    assert str(UnknownCategory("ingest", list(NEEDS))) == (
        "there is no category 'ingest'; did you mean 'ingestion'? One of your own is made with app.category('ingest')."
    )


@pytest.mark.req("W8")
def test_everything_that_is_wrong_is_said_at_once_and_never_the_secret_itself():
    valid, errors = PayloadValidator.validate_payload(
        {"user": {"password": "hunter2"}}, "documents", ["run_id", "document_id"]
    )

    assert not valid
    assert errors == [
        "tenant_id is missing",
        "correlation_id is missing",
        "idempotency_key is missing",
        "document_id is missing",
        "run_id is missing",
        "user.password looks like a secret; keep it where it belongs and pass a reference to it",
    ]
    assert PayloadValidator.validate_payload([1], "sync") == (  # type: ignore[arg-type]
        False,
        ["the payload must be an object of named values, not list"],
    )


@pytest.mark.req("W6", "W38")
def test_a_payload_above_ten_kilobytes_is_warned_of_and_one_above_the_limit_is_wrong():
    with pytest.warns(
        PayloadWarning, match="the payload is 10,3.. bytes of JSON; above 10,240 queues get slow"
    ):
        assert PayloadValidator.validate_payload(without(note="x " * 5_100), "sync") == (True, [])

    valid, errors = PayloadValidator.validate_payload(without(note="x " * 140_000), "sync")

    assert not valid
    assert "the limit is 262,144" in errors[0]


@pytest.mark.req("W7", "W8")
def test_a_payload_is_made_with_a_version_and_a_correlation_of_its_own():
    made = PayloadValidator.create_payload(
        category="ingestion", tenant_id=7, idempotency_key="k", connection_id=456
    )

    assert UUID(made.pop("correlation_id"))
    assert made == {"tenant_id": 7, "idempotency_key": "k", "payload_version": "1.0", "connection_id": 456}
    given = uuid4()
    made = PayloadValidator.create_payload(
        category="export", tenant_id=7, idempotency_key="k", correlation_id=given, payload_version="2.1"
    )
    assert (made["correlation_id"], made["payload_version"]) == (str(given), "2.1")
    assert PayloadValidator.validate_payload(made, "export") == (True, [])


@pytest.mark.req("W8")
def test_a_payload_that_would_not_be_valid_is_not_made():
    with pytest.raises(PayloadInvalid) as refused:
        PayloadValidator.create_payload(category="sync", tenant_id=7, idempotency_key="k", token="abc")

    assert str(refused.value) == (
        "no valid payload of category 'sync': connection_id is missing; token looks like a secret; keep it where it "
        "belongs and pass a reference to it."
    )


@pytest.mark.req("W1")
def test_the_eight_categories_are_ready_made_and_own_ones_are_added():
    mine = Categories()
    mine.add("billing", "invoices", refs=["invoice_id", ("account_id", "account_ids")])

    assert [category.name for category in STANDARD] == list(NEEDS)
    assert list(mine) == [*NEEDS, "billing"]
    assert PayloadValidator.validate_payload(
        without(invoice_id=1, account_ids=[2]), "billing", categories=mine
    )[0]
    assert PayloadValidator.validate_payload(GOOD, "billing", categories=mine)[1] == [
        "invoice_id is missing",
        "account_id or account_ids is missing",
    ]
    assert "billing" not in Categories()
    with pytest.raises(UnknownCategory):
        Categories()["billing"]


def test_a_category_means_one_thing():
    mine = Categories()

    assert mine.add("billing", refs=["invoice_id"]) == mine.add("billing", refs=["invoice_id"])
    with pytest.raises(
        TaskError, match="category 'sync' is there already, with other references \\(connection_id\\)"
    ):
        mine.add("sync")
    with pytest.raises(TaskError, match="refs must be a list of names, not 'invoice_id'"):
        mine.add("invoices", refs="invoice_id")
    with pytest.raises(TaskError, match="refs must be names, or tuples of names"):
        mine.add("invoices", refs=[()])
