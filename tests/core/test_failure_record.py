"""How an attempt failed, in words that any store can keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota._core.failure import CUT, MESSAGE_LIMIT, STACK_LIMIT, ErrorClass, Failure, clip, clip_head, storable


def raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as caught:
        return caught


class Custom(RuntimeError):
    """An error of the user's own."""


@pytest.mark.req("W17")
def test_an_exception_is_recorded_with_type_message_and_stack():
    failure = Failure.of(raised(ValueError("no such address")), ErrorClass.RETRYABLE, retry_after=5)

    assert (failure.error_class, failure.type, failure.message) == (
        ErrorClass.RETRYABLE,
        "ValueError",
        "no such address",
    )
    assert failure.retry_after == 5
    assert failure.stack is not None
    assert failure.stack.endswith("ValueError: no such address\n")
    assert "in raised" in failure.stack


def test_a_type_of_the_users_is_recorded_with_its_module():
    assert Failure.of(Custom("x"), ErrorClass.RETRYABLE).type == f"{__name__}.Custom"


def test_a_failure_without_an_exception_is_named_by_its_class():
    assert Failure.because(ErrorClass.LOST, "gone") == Failure(ErrorClass.LOST, "lost", "gone")


@pytest.mark.req("W17")
def test_no_message_or_stack_can_fill_the_store():
    failure = Failure.of(raised(ValueError("x" * 50_000)), ErrorClass.RETRYABLE)

    assert len(failure.message) == MESSAGE_LIMIT == 2047
    assert failure.message.endswith(CUT)
    assert failure.stack is not None
    assert len(failure.stack) == STACK_LIMIT
    assert failure.stack.startswith("…[cut] ")
    assert failure.stack.endswith("xxx\n")
    assert len(Failure.because(ErrorClass.LOST, "x" * 50_000).message) == MESSAGE_LIMIT


@given(text=st.text(max_size=60), limit=st.integers(10, 50))
def test_clipping_keeps_short_texts_and_bounds_long_ones(text: str, limit: int):
    for clipped in (clip(text, limit), clip_head(text, limit)):
        assert clipped == text if len(text) <= limit else len(clipped) == limit


@given(text=st.text(max_size=60))
def test_any_text_can_be_made_storable(text: str):
    kept = storable(text)

    assert "\x00" not in kept
    assert kept.encode("utf-8").decode("utf-8") == kept
    assert len(kept) == len(text)


def test_what_cannot_be_stored_becomes_visible():
    assert storable("a\x00b\ud800c") == "a␀b?c"
