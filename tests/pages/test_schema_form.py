"""Forms from a task's JSON Schema: every kind of argument has its field, and what is typed comes back exact."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field as Limits

from rota import Rota
from rota.web.pages.forms import Form
from rota.web.pages.rendering import environment
from rota.web.pages.schema_answers import Answers, marked, read
from rota.web.pages.schema_form import NOTHING, Field, blank, prefilled

BIG = 9_007_199_254_740_993
"""What JavaScript would round."""


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Address:
    street: str
    zip: int = 1


def everything(
    to: str,
    copies: int,
    weight: float,
    colour: Colour,
    due: datetime,
    address: Address,
    pages: list[int],
    price: Decimal,
    *,
    size: Literal["a4", 3] = "a4",
    urgent: bool = True,
    note: str | None = None,
    limit: int | None = 3,
    ship_to: Address | None = None,
    day: date | None = None,
    stars: Annotated[int, Limits(ge=1, le=5, description="How good it was.")] = 2,
    api_token: str = "hunter2-hunter2",
) -> None:
    """Do everything.

    More is told here.
    """


def schema_of(function: Any) -> dict[str, Any]:
    app = Rota(url="memory:")
    return dict(json.loads(app.task(function).spec().schema_json))


SCHEMA = schema_of(everything)
GOOD = {
    "arg.to": "ann@example.org",
    "arg.copies": str(BIG),
    "arg.weight": "2.5",
    "arg.colour": '"blue"',
    "arg.due": "2026-11-16T14:30:00+01:00",
    "arg.address.street": "Elbstraße 7",
    "arg.pages": "[1, 2]",
    "arg.price": "12.50",
}
SENT = {
    "to": "ann@example.org",
    "copies": BIG,
    "weight": 2.5,
    "colour": "blue",
    "due": "2026-11-16T14:30:00+01:00",
    "address": {"street": "Elbstraße 7"},
    "pages": [1, 2],
    "price": "12.50",
}


def by_name(fields: tuple[Field, ...]) -> dict[str, Field]:
    return {field.label: field for field in fields}


def answered(schema: dict[str, Any], typed: dict[str, str], payload: dict[str, Any] | None = None) -> Answers:
    fields = blank(schema) if payload is None else prefilled(schema, payload)
    if payload is not None:
        typed = shown(fields) | typed
    return read(fields, Form(list(typed.items())))


def shown(fields: tuple[Field, ...]) -> dict[str, str]:
    """What a browser sends of a form that nobody touches; a text of several lines gets other line ends."""
    flat = [one for field in fields for one in (field.fields or (field,))]
    return {field.name: field.typed.replace("\n", "\r\n") for field in flat}


def test_every_argument_has_a_field_of_its_kind() -> None:
    kinds = {name: field.kind for name, field in by_name(blank(SCHEMA)).items()}

    assert kinds == {
        "to": "text", "copies": "integer", "weight": "number", "colour": "choice", "due": "text", "address": "group",
        "pages": "json", "price": "text", "size": "choice", "urgent": "choice", "note": "text", "limit": "json",
        "ship_to": "group", "day": "text", "stars": "integer", "api_token": "text",
    }  # fmt: skip


def test_a_field_says_in_words_what_it_takes_and_what_it_is_without() -> None:
    fields = by_name(blank(SCHEMA))

    assert fields["copies"].type == "whole number"
    assert fields["copies"].required
    assert fields["colour"].type == "one of red, blue"
    assert fields["pages"].type == "list of whole numbers"
    assert fields["note"].type == "text or nothing"
    assert fields["due"].type == "date and time"
    assert (fields["stars"].help, fields["stars"].default_words) == ("How good it was.", "default 2")
    assert fields["note"].default_words == "optional"


def test_the_registry_publishes_docs_and_defaults_but_no_secrets() -> None:
    assert SCHEMA["description"] == "Do everything."
    assert SCHEMA["properties"]["size"]["default"] == "a4"
    assert "default" not in SCHEMA["properties"]["api_token"]
    assert "hunter2" not in json.dumps(SCHEMA)


def test_what_is_typed_becomes_arguments_and_what_is_left_empty_is_left_to_its_default() -> None:
    answers = answered(SCHEMA, GOOD)

    assert answers.wrong == []
    assert answers.arguments == SENT


def test_what_was_typed_fits_the_task_itself() -> None:
    app = Rota(url="memory:")
    task = app.task(everything)

    task.prepare((), answered(SCHEMA, GOOD).arguments, {})


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("copies", "4x", '"4x" is not a whole number'),
        ("copies", "1" * 2000, "is not a whole number"),
        ("weight", "heavy", '"heavy" is not a number'),
        ("weight", ".", "is not a number"),
        ("weight", "1e999", "is larger than any number"),
        ("colour", '"green"', "cannot be chosen"),
        ("due", "tomorrow", '"tomorrow" is not a date and time'),
        ("day", "16.11.2026", "is not a date, such as 2026-11-16"),
        ("pages", "[1,", "This is not JSON (line 1"),
        ("pages", "NaN", "NaN is no JSON"),
        ("pages", "3", '"3" is not list'),
        ("limit", '"3"', "is not nothing or whole number"),
        ("stars", "7", "must be at most 5"),
        ("stars", "0", "must be at least 1"),
        ("to", "", "is needed: text"),
        ("colour", "", "is needed"),
    ],
)
def test_what_does_not_fit_is_kept_and_told_at_its_field(name: str, typed: str, message: str) -> None:
    answers = answered(SCHEMA, GOOD | {f"arg.{name}": typed})

    [wrong] = answers.wrong
    assert wrong.label == name
    assert wrong.typed == typed
    assert message in wrong.error


def test_all_that_is_wrong_is_told_at_once() -> None:
    answers = answered(SCHEMA, {"arg.copies": "many", "arg.address.zip": "far"})

    assert {field.label for field in answers.wrong} == {
        "to", "copies", "weight", "colour", "due", "street", "zip", "pages", "price",
    }  # fmt: skip


def test_a_secret_is_not_repeated_in_a_message() -> None:
    schema = {"properties": {"api_token": {"type": "integer"}}, "additionalProperties": False}

    [wrong] = answered(schema, {"arg.api_token": "hunter2"}).wrong

    assert "hunter2" not in wrong.error


def test_an_empty_text_is_said_by_two_quotes() -> None:
    assert answered(SCHEMA, GOOD | {"arg.to": '""'}).arguments["to"] == ""
    assert by_name(prefilled(SCHEMA, SENT | {"to": ""}))["to"].typed == '""'


def test_an_object_that_nobody_fills_in_is_left_out_and_one_begun_must_be_whole() -> None:
    assert "ship_to" not in answered(SCHEMA, GOOD).arguments

    answers = answered(SCHEMA, GOOD | {"arg.ship_to.zip": "20095"})

    assert [field.label for field in answers.wrong] == ["street"]


def test_null_can_be_said_where_the_default_is_something_else() -> None:
    assert answered(SCHEMA, GOOD | {"arg.limit": "null"}).arguments["limit"] is None
    assert "limit" not in answered(SCHEMA, GOOD).arguments


@pytest.mark.parametrize(
    "payload",
    [
        SENT,
        SENT | {"copies": 10**60, "weight": 3, "urgent": False, "size": 3, "note": None, "limit": None},
        SENT | {"to": "two\nlines ", "note": '""', "ship_to": {"street": " x ", "zip": 7}},
        SENT | {"to": "bell\a", "copies": "of an older version", "colour": "green", "address": {"city": "Hamburg"}},
        SENT | {"address": None, "pages": {"a": [1.5, BIG]}, "due": 3, "ship_to": None},
    ],
)  # fmt: skip
def test_a_form_that_nobody_touches_changes_nothing(payload: dict[str, Any]) -> None:
    answers = answered(SCHEMA, {}, payload)

    assert answers.wrong == []
    assert answers.edits == {}
    assert json.dumps(answers.arguments, sort_keys=True) == json.dumps(payload, sort_keys=True)


def test_edits_are_only_what_was_changed_and_big_numbers_stay_exact() -> None:
    payload = SENT | {"note": "old", "stars": 4, "ship_to": {"street": "a", "zip": BIG}}

    answers = answered(
        SCHEMA, {"arg.note": "", "arg.stars": "", "arg.ship_to.street": "b", "arg.weight": "2.50"}, payload
    )

    assert answers.edits == {"note": None, "stars": 2, "ship_to": {"street": "b", "zip": BIG}}
    assert answers.arguments["copies"] == BIG


def test_an_argument_that_the_job_has_cannot_be_taken_away() -> None:
    schema = {"properties": {"a": {"type": "string"}}, "additionalProperties": False}

    [wrong] = answered(schema, {"arg.a": ""}, {"a": "x"}).wrong

    assert "cannot be taken away" in wrong.error


def test_what_is_hidden_is_not_shown_and_stays_when_it_is_left_alone() -> None:
    payload = SENT | {"api_token": "hunter2-hunter2", "pages": [{"password": "s3cret", "n": 1}]}

    fields = prefilled(SCHEMA, payload)
    answers = answered(SCHEMA, {"arg.pages": '[{"password": "***", "n": 2}]'}, payload)

    assert "hunter2" not in drawn(fields)
    assert "s3cret" not in drawn(fields)
    assert "leave it as it is to keep it" in drawn(fields)
    assert answers.edits == {"pages": [{"password": "s3cret", "n": 2}]}
    assert answers.arguments["api_token"] == "hunter2-hunter2"


@pytest.mark.parametrize("typed", ["x***", "***,"])
def test_a_part_of_what_is_hidden_cannot_be_edited(typed: str) -> None:
    payload = SENT | {"api_token": "hunter2-hunter2"}

    [wrong] = answered(SCHEMA, {"arg.api_token": typed}, payload).wrong

    assert "type all of it anew" in wrong.error


def test_what_is_hidden_can_be_replaced() -> None:
    payload = SENT | {"api_token": "hunter2-hunter2"}

    assert answered(SCHEMA, {"arg.api_token": "new"}, payload).edits == {"api_token": "new"}


def test_arguments_that_a_task_leaves_open_are_typed_as_one_object() -> None:
    def open_one(a: str, **rest: int) -> None: ...

    schema = schema_of(open_one)

    assert answered(schema, {"arg.a": "x", "arg": '{"b": 1}'}).arguments == {"a": "x", "b": 1}
    assert "a field of its own" in answered(schema, {"arg.a": "x", "arg": '{"a": 1}'}).wrong[0].error
    assert answered(schema, {"arg": '{"b": 2, "c": 3}'}, {"a": "x", "b": 1, "c": 3}).edits == {"b": 2}


@pytest.mark.parametrize("typed", ['{"y": 3}', "{}", ""])
def test_further_arguments_cannot_be_taken_away_from_a_job_but_a_new_one_goes_without(typed: str) -> None:
    fields = prefilled({}, {"x": 2, "y": 3})

    [wrong] = read(fields, Form([("arg", typed)])).wrong
    fresh = read(fields, Form([("arg", typed)]), keeps=False)

    assert "'x', and it cannot be taken away" in wrong.error
    assert (fresh.wrong, fresh.arguments) == ([], json.loads(typed or "{}"))


def test_what_is_typed_over_something_hidden_is_an_edit_even_where_it_is_the_same() -> None:
    schema = {"properties": {"login": {"type": "object", "properties": {"password": {"type": "string"}}}}}
    payload = {"login": {"password": "s3cret"}, "api_token": "hunter2", "n": 1}
    open_schema = schema | {"additionalProperties": True}

    group = answered(open_schema, {"arg.login.password": "s3cret"}, payload)
    further = answered(open_schema, {"arg": '{"api_token": "hunter2", "n": 1}'}, payload)
    spaced = answered(open_schema, {"arg": '{"api_token": "***",  "n": 1}'}, payload)

    assert group.edits == {"login": {"password": "s3cret"}}
    assert further.edits == {"api_token": "hunter2"}
    assert (spaced.edits, spaced.arguments) == ({}, payload)


def test_a_task_that_published_nothing_takes_any_object() -> None:
    [field] = blank({})

    assert field.kind == "json"
    assert answered({}, {"arg": '{"n": 1}'}).arguments == {"n": 1}
    assert answered({}, {"arg": ""}).arguments == {}


@pytest.mark.parametrize(
    "part",
    [
        {"$ref": "#/$defs/Gone"},
        {"$ref": "#/$defs/Tree"},
        {"type": ["integer", "string"]},
        {"enum": [[1]]},
        {"enum": []},
    ],
)
def test_what_is_too_intricate_for_a_field_is_typed_as_json(part: dict[str, Any]) -> None:
    tree = {"type": "object", "additionalProperties": {"$ref": "#/$defs/Tree"}}

    [field] = blank({"properties": {"x": part}, "$defs": {"Tree": tree}, "additionalProperties": False})

    assert field.kind == "json"


def test_names_cannot_be_mistaken_for_each_other() -> None:
    part = {"type": "object", "properties": {"b": {"type": "string"}}}
    schema = {"properties": {"a": part, "a.b": {"type": "string"}}, "additionalProperties": False}

    answers = answered(schema, {"arg.a.b": "inner", "arg.a%2Eb": "outer"})

    assert answers.arguments == {"a": {"b": "inner"}, "a.b": "outer"}


def test_what_only_the_code_of_the_task_finds_is_told_at_the_argument_it_names() -> None:
    answers = answered(SCHEMA, GOOD)

    fields = by_name(
        marked(answers, "everything cannot be enqueued: argument 'price': no currency, got '12.50'.")
    )

    assert "no currency" in fields["price"].error
    assert sum(bool(field.error) for field in fields.values()) == 1


def test_fields_are_drawn_with_labels_and_everything_escaped() -> None:
    schema = {
        "properties": {"<b>": {"type": "string", "description": "<i>help</i>", "default": '"><script>'}},
        "additionalProperties": False,
    }

    page = drawn(read(blank(schema), Form([("arg.<b>", "</textarea><script>")])).fields)

    assert "<script>" not in page
    assert "<i>" not in page
    assert '<label for="f0">' in page


def drawn(fields: tuple[Field, ...]) -> str:
    template = environment().from_string(
        '{% from "schema_form.html" import schema_fields with context %}{{ schema_fields(fields) }}'
    )
    return template.render(fields=fields)


def test_nothing_is_not_null() -> None:
    assert NOTHING is not None
    assert by_name(blank(SCHEMA))["to"].default is NOTHING
