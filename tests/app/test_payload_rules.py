"""What a payload or a result may not hold, whoever writes it; and how large it may be."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from rota import PayloadInvalid, PayloadTooLarge, Rota
from rota.config import Settings
from rota.stores.memory import MemoryStore
from rota.task import PayloadWarning

NAN = float("nan")


class Reading(BaseModel):
    value: float


def nested(depth: int) -> list:
    inner: list = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.fixture
def keep(memory_app):
    @memory_app.task
    def keep(value: Any, also: Any = None) -> Any:
        return value

    return keep


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            NAN,
            "keep cannot be enqueued: value is NaN or infinite, which JSON has no word for. Pass None or a text",
        ),
        ([1.0, {"x": float("-inf")}], "value[1].x is NaN or infinite"),
        (Reading(value=NAN), "value.value is NaN or infinite"),
        ({"a": [Reading(value=1.0), Reading(value=NAN)]}, "value.a[1].value is NaN or infinite"),
        ({"a": "x\x00y"}, "value.a contains a NUL character, which PostgreSQL cannot store. Remove it"),
        ({"a\x00": 1}, "contains a NUL character"),
        (["\ud800"], "it contains a lone surrogate, which is not text; decode it with errors='replace'"),
        (nested(60), "it is nested more than 50 levels deep. Flatten it"),
        (nested(500), "cannot be written as JSON"),
    ],
)
def test_what_json_or_a_database_cannot_keep_is_refused_with_its_place(keep, value, message):
    with pytest.raises(PayloadInvalid) as refused:
        keep.prepare((value,), {})

    assert message in str(refused.value)


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "null", "\\u0000", None, {"null": None}, nested(40), 10**30]
)
def test_what_only_looks_suspicious_is_kept(keep, value):
    assert keep.arguments(keep.prepare((value,), {}).payload_json) == ((), {"value": value})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (NAN, "the result of keep cannot be stored: the value is NaN or infinite"),
        (Reading(value=NAN), "the result of keep cannot be stored: value is NaN or infinite"),
        ("\x00", "contains a NUL character"),
        (object(), "the result of keep cannot be stored as JSON (Unable to serialize unknown type"),
    ],
)
def test_a_result_follows_the_same_rules(keep, value, message):
    with pytest.raises(PayloadInvalid) as refused:
        keep.dump_result(value)

    assert message in str(refused.value)


def small_app() -> Rota:
    settings = Settings.load(payload_warn=100, payload_limit=1000, result_limit=500)
    return Rota(settings=settings, store=MemoryStore())


def test_a_large_payload_is_stored_with_one_warning_a_task():
    app = small_app()

    @app.task
    def keep(text: str) -> None: ...

    with pytest.warns(
        PayloadWarning, match="the arguments of keep are 211 bytes of JSON; above 100 queues get slow"
    ):
        keep.prepare(("x" * 200,), {})
    keep.prepare(("x" * 200,), {})  # a second warning would fail the test


@pytest.mark.req("W38")
def test_a_payload_above_the_limit_is_refused():
    app = small_app()

    @app.task
    def keep(text: str) -> None: ...

    with pytest.raises(
        PayloadTooLarge, match="keep cannot be enqueued: it is 2,011 bytes of JSON; the limit is 1,000"
    ):
        keep.prepare(("x" * 2000,), {})


def test_size_is_counted_in_bytes_not_in_characters():
    app = small_app()

    @app.task
    def keep(text: str) -> None: ...

    with pytest.raises(PayloadTooLarge, match="it is 1,211 bytes"):
        keep.prepare(("☃" * 400,), {})


def test_a_result_above_its_limit_is_refused():
    app = small_app()

    @app.task
    def keep(text: str) -> str: ...

    with pytest.raises(
        PayloadTooLarge,
        match="the result of keep cannot be stored: it is 602 bytes of JSON; the limit is 500",
    ):
        keep.dump_result("x" * 600)


@pytest.mark.req("W6")
def test_the_limits_are_ten_kilobytes_and_a_quarter_megabyte_unless_told(keep):
    with pytest.warns(PayloadWarning):
        keep.prepare(("x" * 11_000,), {})
    with pytest.raises(PayloadTooLarge, match="the limit is 262,144"):
        keep.prepare(("x" * 262_144,), {})
