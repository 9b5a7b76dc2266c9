"""Retry: both profiles with their exact figures, error classes, limits, and the policy as stored."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota._core.failure import FINAL, ErrorClass
from rota._core.retry import Retry, spread_of

MIDDLE = 0.5


def pauses(policy: Retry, error_class: ErrorClass, attempts: range, *, spread: float = MIDDLE) -> list[float]:
    return [round(policy.delay(error_class, attempt, spread=spread), 6) for attempt in attempts]


@pytest.mark.req("W21")
@pytest.mark.parametrize("error_class", [ErrorClass.TRANSIENT, ErrorClass.RETRYABLE, ErrorClass.TIMEOUT])
def test_doc20_pauses_double_from_two_seconds(error_class: ErrorClass):
    assert pauses(Retry.doc20(), error_class, range(1, 6)) == [2, 4, 8, 16, 32]


@pytest.mark.req("W22")
def test_doc20_pauses_after_a_rate_limit_double_from_sixty_seconds():
    assert pauses(Retry.doc20(), ErrorClass.RATE_LIMITED, range(1, 4)) == [60, 120, 240]
    assert pauses(Retry.doc20(), ErrorClass.RATE_LIMITED, range(4, 6)) == [300, 300]
    assert pauses(Retry.doc20(cap=3600), ErrorClass.RATE_LIMITED, range(4, 6)) == [480, 960]


@pytest.mark.req("W23")
def test_doc20_pauses_are_spread_by_a_fifth_either_way_and_capped_at_300_seconds():
    doc20, retryable = Retry.doc20(), ErrorClass.RETRYABLE

    assert pauses(doc20, retryable, range(1, 5), spread=0.0) == [1.6, 3.2, 6.4, 12.8]
    assert pauses(doc20, retryable, range(1, 5), spread=1.0) == [2.4, 4.8, 9.6, 19.2]
    assert pauses(doc20, retryable, range(8, 12)) == [256, 300, 300, 300]
    assert pauses(doc20, retryable, range(8, 10), spread=1.0) == [300, 300]


@pytest.mark.req("W20")
def test_doc20_gives_up_after_five_attempts():
    doc20 = Retry.doc20()

    allowed = [doc20.allows(ErrorClass.RETRYABLE, attempt, doc20.attempts) for attempt in range(1, 6)]

    assert allowed == [True, True, True, True, False]


@pytest.mark.req("L19")
def test_lipas_pauses_double_from_one_second_with_a_tenth_of_jitter_and_at_most_five_minutes():
    lipas, retryable = Retry.lipas(), ErrorClass.RETRYABLE

    assert lipas.attempts == 3
    assert pauses(lipas, retryable, range(1, 4)) == [1, 2, 4]
    assert pauses(lipas, retryable, range(3, 4), spread=0.625) == [4.1]
    assert pauses(lipas, retryable, range(1, 4), spread=0.0) == [0.9, 1.8, 3.6]
    assert pauses(lipas, retryable, range(1, 4), spread=1.0) == [1.1, 2.2, 4.4]
    assert pauses(lipas, retryable, range(9, 12)) == [256, 300, 300]
    assert pauses(Retry.lipas(cap=60), retryable, range(6, 9)) == [32, 60, 60]


@given(
    attempt=st.integers(min_value=1, max_value=32_767),
    spread=st.floats(min_value=0, max_value=1),
    error_class=st.sampled_from(ErrorClass),
)
def test_no_pause_is_negative_or_above_the_cap(attempt: int, spread: float, error_class: ErrorClass):
    assert 0 <= Retry().delay(error_class, attempt, spread=spread) <= 300


def test_a_pause_that_the_other_side_asked_for_is_taken_as_it_is():
    policy = Retry()

    assert policy.delay(ErrorClass.RATE_LIMITED, 1, spread=1.0, retry_after=4000) == 4000
    assert policy.delay(ErrorClass.RETRYABLE, 1, spread=1.0, retry_after=-5) == 0


@pytest.mark.req("W18")
@pytest.mark.parametrize("error_class", ErrorClass)
def test_final_classes_are_never_repeated_and_the_others_are(error_class: ErrorClass):
    assert Retry().allows(error_class, 1, 5) is (error_class not in FINAL)


def test_a_loss_is_repeated_only_where_the_policy_allows_it():
    assert Retry().allows(ErrorClass.LOST, 1, 5)
    assert not Retry(lost=False).allows(ErrorClass.LOST, 1, 5)
    assert not Retry.never().allows(ErrorClass.RETRYABLE, 1, Retry.never().attempts)


def test_rate_limits_that_do_not_count_never_use_up_the_attempts():
    assert not Retry().allows(ErrorClass.RATE_LIMITED, 5, 5)
    assert Retry(rate_limited_counts=False).allows(ErrorClass.RATE_LIMITED, 5, 5)


class Flaky(ConnectionError):
    """An error of a family."""


@pytest.mark.req("W18")
def test_the_nearest_type_of_an_errors_family_decides_its_class():
    policy = Retry(
        classes={
            "OSError": ErrorClass.NON_RETRYABLE,
            "ConnectionError": ErrorClass.TRANSIENT,
            "builtins.KeyError": ErrorClass.RATE_LIMITED,
        }
    )

    assert policy.class_of(Flaky()) is ErrorClass.TRANSIENT
    assert policy.class_of(FileNotFoundError()) is ErrorClass.NON_RETRYABLE
    assert policy.class_of(KeyError()) is ErrorClass.RATE_LIMITED
    assert policy.class_of(ValueError()) is ErrorClass.RETRYABLE


def test_a_class_may_be_given_as_a_word():
    policy = Retry(classes={"ValueError": "non_retryable"})  # type: ignore[dict-item]

    assert policy.class_of(ValueError()) is ErrorClass.NON_RETRYABLE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attempts": 0}, "Retry(attempts=0): a job needs at least one attempt; use 1 for no retry."),
        ({"attempts": 32_768}, "Retry(attempts=32768): at most 32767."),
        ({"base": -1}, "Retry: base, cap and rate_limited_base are seconds and cannot be negative."),
        ({"cap": -1}, "Retry: base, cap and rate_limited_base are seconds and cannot be negative."),
        (
            {"rate_limited_base": -1},
            "Retry: base, cap and rate_limited_base are seconds and cannot be negative.",
        ),
        ({"jitter": 1}, "Retry(jitter=1): give a share from 0 to below 1, such as 0.2 for 20 %."),
        ({"jitter": -0.1}, "Retry(jitter=-0.1): give a share from 0 to below 1, such as 0.2 for 20 %."),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(options: dict[str, float], message: str):
    with pytest.raises(ValueError) as refused:
        Retry(**options)  # type: ignore[arg-type]

    assert str(refused.value) == message


policies = st.builds(
    Retry,
    attempts=st.integers(1, 32_767),
    base=st.floats(0, 1e6),
    cap=st.floats(0, 1e6),
    jitter=st.floats(0, 1, exclude_max=True),
    rate_limited_base=st.floats(0, 1e6),
    rate_limited_counts=st.booleans(),
    lost=st.booleans(),
    max_snoozes=st.integers(0, 10**6),
    classes=st.dictionaries(st.text(max_size=20), st.sampled_from(ErrorClass), max_size=4),
)


@given(policy=policies)
def test_a_policy_survives_storage_as_json(policy: Retry):
    assert Retry.from_json(json.loads(json.dumps(policy.as_json()))) == policy


def test_older_code_reads_a_policy_of_newer_code():
    newer = Retry(attempts=7).as_json() | {"moon_phase": "full"}

    assert Retry.from_json(newer) == Retry(attempts=7)
    assert Retry.from_json({}) == Retry()


@given(number=st.integers(0, 2**128 - 1), attempt=st.integers(0, 32_767))
def test_jitter_is_the_same_everywhere_for_one_attempt(number: int, attempt: int):
    job_id = UUID(int=number)

    assert 0 <= spread_of(job_id, attempt) < 1
    assert spread_of(job_id, attempt) == spread_of(job_id, attempt)


def test_jitter_differs_between_attempts_and_jobs():
    spreads = {spread_of(UUID(int=number), attempt) for number in range(20) for attempt in range(1, 6)}

    assert len(spreads) == 100
    assert min(spreads) < 0.1
    assert max(spreads) > 0.9


def test_a_type_map_may_name_exceptions_by_type_and_refuses_a_class_that_is_none():
    by_type = Retry(classes={ConnectionError: "transient", "ValueError": ErrorClass.NON_RETRYABLE})

    assert by_type.class_of(ConnectionResetError()) is ErrorClass.TRANSIENT
    assert by_type.class_of(ValueError()) is ErrorClass.NON_RETRYABLE
    with pytest.raises(ValueError, match=r"'fatal' is no error class. Use one of transient, retryable"):
        Retry(classes={"ValueError": "fatal"})
    with pytest.raises(ValueError, match="7 is no exception type and no name of one"):
        Retry(classes={7: "transient"})


def test_older_code_reads_a_policy_with_an_error_class_that_it_does_not_know():
    stored = Retry(classes={"ValueError": "transient"}).as_json()
    stored["classes"]["KeyError"] = "invented_later"

    assert Retry.from_json(stored).classes == {"ValueError": ErrorClass.TRANSIENT}
