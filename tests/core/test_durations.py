"""Durations as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota._core.durations import seconds


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("30s", 30),
        ("5m", 300),
        ("1h30m", 5400),
        ("1h 30m 5s", 5405),
        ("2d", 172_800),
        ("1w", 604_800),
        ("250ms", 0.25),
        ("1.5h", 5400),
        (" 10 S ", 10),
        (90, 90),
        (0, 0),
        (0.5, 0.5),
        (timedelta(minutes=2), 120),
    ],
)
def test_a_duration_is_understood(written: object, meant: float):
    assert seconds(written) == pytest.approx(meant)  # type: ignore[arg-type]


@given(number=st.integers(0, 10_000), unit=st.sampled_from(["ms", "s", "m", "h", "d", "w"]))
def test_every_unit_with_any_number_is_understood(number: int, unit: str):
    one = seconds(f"1{unit}")

    assert seconds(f"{number}{unit}") == pytest.approx(number * one)


@pytest.mark.parametrize("written", ["soon", "", "5x", "5m later", "-5m", "1h-30m", "m5"])
def test_a_text_that_is_no_duration_is_refused_with_examples(written: str):
    with pytest.raises(ValueError) as refused:
        seconds(written, "delay")

    assert str(refused.value) == (
        f"delay {written!r} is not understood; "
        'write it like "30s", "5m", "1h30m", "2d" or a number of seconds.'
    )


@pytest.mark.parametrize("given_", [-1, -0.5, 1e10, float("nan"), float("inf"), timedelta(seconds=-1)])
def test_a_duration_out_of_reach_is_refused(given_: object):
    with pytest.raises(ValueError) as refused:
        seconds(given_, "timeout")  # type: ignore[arg-type]

    assert str(refused.value) == f"timeout must be 0 or more and below 300 years, not {given_!r}."


@pytest.mark.parametrize("given_", [None, True, [5], {"minutes": 5}])
def test_what_is_no_duration_at_all_is_a_type_error(given_: object):
    with pytest.raises(TypeError) as refused:
        seconds(given_)  # type: ignore[arg-type]

    assert str(refused.value) == (
        f'duration must be seconds, a text such as "5m" or a timedelta, not {given_!r}.'
    )
