"""What a child says of its job's end is checked by the worker: the child runs code that nobody knows."""

from __future__ import annotations

import time

import pytest

from build import a_stored_job
from rota._core.failure import ErrorClass
from rota._core.outcome import Raised, Returned
from rota.worker.execution import Run
from rota.worker.executors.process.ends import said


def a_run() -> Run:
    return Run(a_stored_job(), None, time.monotonic())


def test_a_result_at_the_limit_is_taken():
    body = b'"' + b"x" * 98 + b'"'

    assert said(a_run(), {"how": "returned", "result": True}, body, 100) == Returned(body.decode())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'"' + b"x" * 99 + b'"', "it is 101 bytes of JSON; the limit is 100"),
        (b'{"half": ', "it is no JSON"),
        (b"\xff\xfe", "it is no JSON"),
        (b'"\\u0000"', "contains a NUL character"),
    ],
)
def test_a_result_that_could_not_be_stored_ends_the_job_and_is_not_run_again(body: bytes, words: str):
    outcome = said(a_run(), {"how": "returned", "result": True}, body, 100)

    assert isinstance(outcome, Raised)
    assert outcome.failure.error_class is ErrorClass.NON_RETRYABLE
    assert words in outcome.failure.message
    assert "its result cannot be stored" in outcome.failure.message


def test_an_error_class_that_nobody_knows_is_an_error_like_any_other():
    outcome = said(a_run(), {"how": "raised", "class": "immortal", "message": "odd"}, b"", 100)

    assert isinstance(outcome, Raised)
    assert (outcome.failure.error_class, outcome.failure.message) == (ErrorClass.RETRYABLE, "odd")
