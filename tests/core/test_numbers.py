"""Numbers that can be added up: log-scale buckets, percentiles, rates."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota._core.numbers import (
    LAST,
    Ending,
    Figures,
    LaneTotal,
    Summary,
    TenantTotal,
    Total,
    added,
    added_lanes,
    added_tenants,
    bucket,
    edges,
    percentile,
)
from rota._core.queue import Queue

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@given(st.floats(min_value=0.0, max_value=1e9))
def test_a_length_lies_between_the_edges_of_its_bucket(seconds):
    low, high = edges(bucket(seconds))

    assert low <= seconds < high or low == pytest.approx(seconds)


def test_buckets_follow_each_other_without_a_gap():
    assert edges(0) == (0.0, 0.001)
    for number in range(LAST):
        assert edges(number)[1] == edges(number + 1)[0]
    assert edges(LAST)[1] == inf
    assert bucket(1e12) == bucket(inf) == LAST
    assert bucket(-5.0) == bucket(float("nan")) == 0


@pytest.mark.req("L31")
@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_percentiles_are_off_by_less_than_an_eighth(share):
    rng = random.Random(7)
    lengths = sorted(rng.lognormvariate(0, 2) for _ in range(5000))
    counts: dict[int, int] = {}
    for length in lengths:
        counts[bucket(length)] = counts.get(bucket(length), 0) + 1

    exact = lengths[int(share * len(lengths))]
    assert percentile(counts, share) == pytest.approx(exact, rel=0.125)


def test_of_nothing_there_is_no_percentile_and_no_error_rate():
    nothing = Summary.of([])

    assert (percentile({}, 0.5), nothing.wait(0.5), nothing.error_rate) == (None, None, None)
    assert LaneTotal("fast", 0, 0).used is None


def test_all_that_took_for_ever_is_told_by_its_lower_edge():
    assert percentile({LAST: 3}, 0.5) == edges(LAST)[0]


def test_totals_of_several_workers_are_added_up():
    one = Total("mail", "send", Ending.COMPLETED, 2, 1.0, 3.0, {1: 2}, {4: 1, 5: 1})
    two = Total("mail", "send", Ending.COMPLETED, 3, 2.0, 4.0, {1: 1, 2: 2}, {5: 3})
    other = Total("mail", "send", Ending.DEAD, 1)

    assert added([one, other, two]) == (
        Total("mail", "send", Ending.COMPLETED, 5, 3.0, 7.0, {1: 3, 2: 2}, {4: 1, 5: 4}),
        other._replace(waits={}, runs={}),
    )
    assert added_tenants([TenantTotal("b", 1, 1, 2.0), TenantTotal("a", 1), TenantTotal("b", 2, 0, 1.0)]) == (
        TenantTotal("a", 1),
        TenantTotal("b", 3, 1, 3.0),
    )
    assert added_lanes([LaneTotal("fast", 10, 4), LaneTotal("fast", 10, 6)])[0].used == 0.5


@pytest.mark.req("L31")
def test_an_error_rate_is_the_share_of_attempts_that_came_to_a_bad_end():
    totals = [
        Total("mail", "send", Ending.COMPLETED, 6),
        Total("mail", "send", Ending.FAILED, 2),
        Total("mail", "send", Ending.DEAD, 2),
        Total("mail", "send", Ending.SNOOZED, 90),
        Total("slow", "report", Ending.COMPLETED, 1),
    ]
    figures = Figures(NOON, NOON + timedelta(hours=1), tuple(totals))

    assert figures.by_task()["send"].error_rate == 0.4
    assert figures.by_queue()["slow"].error_rate == 0.0
    assert (figures.whole().attempts, figures.whole().done, figures.seconds) == (101, 7, 3600)


def test_a_queue_says_how_long_its_jobs_should_wait():
    assert Queue("mail", target="30s") == Queue("mail", target=30.0)
    assert Queue("mail").target_seconds is None
    with pytest.raises(ValueError, match="a target is longer than nothing"):
        Queue("mail", target=0)
    with pytest.raises(ValueError, match="give the name of a queue"):
        Queue(" ")
