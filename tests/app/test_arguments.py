"""Arguments: checked against type hints at enqueue, kept as one JSON object, read back as what they were."""

from __future__ import annotations

import dataclasses
import enum
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Unpack

import pytest
from pydantic import BaseModel, Field

from rota import PayloadInvalid


class Colour(enum.Enum):
    RED = "red"


class Address(BaseModel):
    street: str
    number: int = Field(alias="no")


@dataclasses.dataclass
class Parcel:
    weight: Decimal
    to: Address


@pytest.mark.req("L8")
@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, 7),
        (float, 1.5),
        (str, "naïve ☃"),
        (bool, True),
        (bytes, b"\xff\x00"),
        (None | int, None),
        (datetime, datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)),
        (date, date(2026, 1, 2)),
        (timedelta, timedelta(hours=1)),
        (uuid.UUID, uuid.UUID(int=7)),
        (Decimal, Decimal("1.10")),
        (PurePosixPath, PurePosixPath("/a/b")),
        (Colour, Colour.RED),
        (Literal["a", "b"], "b"),
        (Address, Address(street="High", no=3)),
        (Parcel, Parcel(Decimal("0.5"), Address(street="High", no=3))),
        (list[Address], [Address(street="High", no=3)]),
        (dict[str, int], {"a": 1}),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (int | str, "7"),
        (Annotated[int, Field(gt=0)], 1),
        (Any, {"a": [1, None, "x"]}),
    ],
    ids=str,
)
def test_an_argument_comes_back_as_what_it_was(memory_app, hint, value):
    def handle(x): ...

    handle.__annotations__ = {"x": hint}
    task = memory_app.task(handle)

    job = task.prepare((value,), {})

    assert task.arguments(job.payload_json) == ((), {"x": value})


@pytest.mark.req("L8", "D17")
@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (
            (),
            {},
            "send cannot be enqueued: argument 'to' is missing. Its arguments are (to: 'str', times: 'int' = 1).",
        ),
        (("a", 2, 3), {}, "send got 3 positional arguments and takes 2."),
        (("a",), {"to": "b"}, "send got argument 'to' twice: once by place and once by name. Give it once."),
        (("a",), {"tmes": 2}, "it has no argument 'tmes' (did you mean 'times'?)"),
        (("a", "many"), {}, "argument 'times': Input should be a valid integer, unable to parse string"),
        ((7,), {}, "argument 'to': Input should be a valid string, got 7"),
        (
            ("\ud800",),
            {},
            "argument 'to' cannot be written as JSON (it contains a lone surrogate, which is not text;",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_refused_like_a_wrong_call(memory_app, args, kwargs, message):
    @memory_app.task
    def send(to: str, times: int = 1) -> None: ...

    with pytest.raises(PayloadInvalid) as refused:
        send.prepare(args, kwargs)

    assert message in str(refused.value)


def test_of_many_problems_the_first_three_are_told(memory_app):
    @memory_app.task
    def send(a: int, b: int, c: int, d: int) -> None: ...

    with pytest.raises(PayloadInvalid, match=r"'a' is missing; .*'b' .*; .*'c' .*; and 1 more problems"):
        send.prepare((), {})


def test_a_long_value_is_shortened_in_the_message(memory_app):
    @memory_app.task
    def send(a: int) -> None: ...

    with pytest.raises(PayloadInvalid) as refused:
        send.prepare(("x" * 5000,), {})

    assert len(str(refused.value)) < 300


@pytest.mark.req("D17")
def test_arguments_are_stored_by_name_in_the_order_of_the_signature(memory_app):
    @memory_app.task
    def send(to: str, subject: str) -> None: ...

    assert send.prepare((), {"subject": "s", "to": "a"}).payload_json == '{"to":"a","subject":"s"}'


def test_defaults_are_not_stored_so_that_a_job_gets_the_default_of_the_code_that_runs_it(memory_app):
    @memory_app.task
    def send(to: str, template: str = "welcome") -> None: ...

    assert send.prepare(("a",), {}).payload_json == '{"to":"a"}'
    assert send.prepare(("a",), {"template": "welcome"}).payload_json == '{"to":"a","template":"welcome"}'


def test_what_the_checker_makes_of_an_argument_is_what_is_stored(memory_app):
    @memory_app.task
    def charge(cents: int, day: date) -> None: ...

    assert charge.prepare(("700", "2026-01-02"), {}).payload_json == '{"cents":700,"day":"2026-01-02"}'


def test_parameters_without_hints_take_any_json_value(memory_app):
    @memory_app.task
    def send(to, options=None): ...

    job = send.prepare(("a", {"deep": [1, 2.5, None]}), {})

    assert send.arguments(job.payload_json) == ((), {"to": "a", "options": {"deep": [1, 2.5, None]}})


def test_positional_only_parameters_are_stored_by_name_and_given_by_place(memory_app):
    @memory_app.task
    def add(a: int, b: int = 2, /, *, c: int = 3) -> int:
        return a + b + c

    job = add.prepare((1,), {"c": 5})

    assert job.payload_json == '{"a":1,"c":5}'
    assert add.arguments(job.payload_json) == ((1,), {"c": 5})


def test_further_named_arguments_are_checked_against_their_hint(memory_app):
    @memory_app.task
    def count(name: str, **amounts: int) -> None: ...

    assert count.arguments(count.prepare(("a",), {"x": "1", "y": 2}).payload_json) == (
        (),
        {"name": "a", "x": 1, "y": 2},
    )
    with pytest.raises(PayloadInvalid, match="argument 'x': Input should be a valid integer"):
        count.prepare(("a",), {"x": "many"})


def test_further_named_arguments_may_be_a_typed_dictionary(memory_app):
    from typing_extensions import TypedDict as ModernTypedDict

    class Extra(ModernTypedDict, total=False):
        when: date

    def plan(name: str, **extra: Unpack[Extra]) -> None: ...

    task = memory_app.task(plan)

    job = task.prepare(("a",), {"when": date(2026, 1, 2)})
    assert task.arguments(job.payload_json) == ((), {"name": "a", "when": date(2026, 1, 2)})


def test_hints_may_name_types_of_the_function_around(memory_app):
    class Point(BaseModel):
        x: int

    @memory_app.task
    def draw(at: Point) -> Point: ...

    assert draw.arguments(draw.prepare((Point(x=1),), {}).payload_json) == ((), {"at": Point(x=1)})


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (
            '{"tpo":"a"}',
            "the stored arguments do not fit send: argument 'to' is missing; it has no argument 'tpo'",
        ),
        ('{"to":7}', "argument 'to': Input should be a valid string, got 7"),
        ("[1]", "Input should be an object"),
        ("{", "Invalid JSON"),
    ],
)
def test_a_stored_payload_that_does_not_fit_is_refused_before_the_handler_runs(memory_app, stored, message):
    @memory_app.task
    def send(to: str) -> None: ...

    with pytest.raises(PayloadInvalid) as refused:
        send.arguments(stored)

    assert message in str(refused.value)


def test_what_cannot_be_written_as_json_is_named(memory_app):
    @memory_app.task
    def send(to: str, over: Any) -> None: ...

    with pytest.raises(
        PayloadInvalid, match=r"argument 'over' cannot be written as JSON .*unknown type.*Pass plain values"
    ):
        send.prepare(("a", object()), {})
