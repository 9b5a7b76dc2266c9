"""Every error says what happened, with which value, and what to do next."""

from __future__ import annotations

from uuid import UUID

import pytest

from rota import errors
from rota._core.job import State

JOB = UUID(int=7)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            errors.SchemaOutdated(None, 3),
            "the database has no Rota schema yet (this code needs version 3). Run `rota migrate`.",
        ),
        (
            errors.SchemaOutdated(2, 3),
            "the database has Rota schema version 2, this code needs 3. Run `rota migrate`.",
        ),
        (
            errors.SchemaOutdated(4, 3),
            "the database has Rota schema version 4, this code knows only 3. Upgrade the rota package here.",
        ),
        (
            errors.NotSupported("memory", "enqueue within a transaction", "Use PostgreSQL."),
            "the memory store cannot enqueue within a transaction. Use PostgreSQL.",
        ),
        (
            errors.UnknownTask("send_emial", ["send_email", "report"]),
            (
                "no task named 'send_emial' is registered here (2 are); did you mean 'send_email'? "
                "Import the module that defines it before you use it."
            ),
        ),
        (
            errors.UnknownTask("zzz", []),
            (
                "no task named 'zzz' is registered here (0 are). "
                "Import the module that defines it before you use it."
            ),
        ),
        (
            errors.KeyConflict("order:7", JOB),
            (
                f"the key 'order:7' belongs to job {JOB}, which was enqueued with other arguments. "
                "Use another key for other work, or the same arguments to get that job."
            ),
        ),
        (
            errors.NotUnique("site:7", JOB),
            (
                f"a job with the unique key 'site:7' exists already: {JOB}. "
                "Wait for it, or choose another policy (keep, replace, reschedule, merge)."
            ),
        ),
        (
            errors.JobNotFound(JOB),
            (
                f"no job has the id {JOB}. It may have been removed by retention; "
                "`rota jobs list` shows what is there."
            ),
        ),
        (
            errors.JobChanged(JOB, State.RUNNING),
            (
                f"job {JOB} was changed by somebody else meanwhile and is running now. "
                "Look at it again, then repeat."
            ),
        ),
        (
            errors.MoveRefused(JOB, "running", "hold", "Cancel it instead."),
            f"cannot hold job {JOB}: it is running. Cancel it instead.",
        ),
        (
            errors.JobDead(JOB, "timeout", "took 60 s"),
            (
                f"job {JOB} died (timeout): took 60 s. `rota jobs show {JOB}` has the stack; "
                f"`rota jobs retry {JOB}` runs it again."
            ),
        ),
        (
            errors.JobDead(JOB, None, None),
            (
                f"job {JOB} died (no class): no message. `rota jobs show {JOB}` has the stack; "
                f"`rota jobs retry {JOB}` runs it again."
            ),
        ),
        (
            errors.JobCancelled(JOB, "typo"),
            f"job {JOB} was cancelled (typo). `rota jobs retry {JOB}` runs it again.",
        ),
        (
            errors.JobCancelled(JOB, None),
            f"job {JOB} was cancelled (no reason given). `rota jobs retry {JOB}` runs it again.",
        ),
        (
            errors.ResultTimeout(JOB, 2.5, "scheduled"),
            f"job {JOB} did not finish within 2.5 s; it is scheduled and goes on. Is a worker running?",
        ),
        (errors.Snooze("5m", "no stock"), "snoozed for 300 s: no stock"),
        (errors.Snooze(1.5), "snoozed for 1.5 s"),
        (errors.Cancel(), "cancelled by its handler"),
        (errors.Cancel("not needed"), "not needed"),
        (errors.Die("beyond help"), "beyond help"),
        (errors.RetryAfter("1m"), "asked to be retried after 60 s"),
        (errors.RetryAfter(30, "busy"), "busy"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_says_what_to_do(error: Exception, message: str):
    assert str(error) == message


def test_a_pause_that_makes_no_sense_is_named_by_what_asked_for_it():
    with pytest.raises(ValueError, match=r"^Snooze delay 'soon' is not understood"):
        errors.Snooze("soon")
    with pytest.raises(ValueError, match=r"^RetryAfter delay must be 0 or more"):
        errors.RetryAfter(-1)


def test_outcomes_are_no_errors_and_errors_no_outcomes():
    outcomes = {errors.Snooze, errors.Cancel, errors.Die, errors.RetryAfter}

    assert all(issubclass(kind, errors.Outcome) for kind in outcomes)
    assert not any(issubclass(kind, errors.RotaError) for kind in outcomes)


def test_every_error_stands_in_the_tree_at_the_top_of_the_module():
    assert errors.__doc__ is not None
    kinds = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.RotaError | errors.Outcome)
    ]

    assert [name for name in kinds if name not in errors.__doc__] == []


def test_a_lookup_that_fails_is_also_a_lookup_error():
    assert issubclass(errors.UnknownTask, LookupError)
    assert issubclass(errors.JobNotFound, LookupError)
    assert issubclass(errors.PayloadInvalid, ValueError)
    assert issubclass(errors.ResultTimeout, TimeoutError)
