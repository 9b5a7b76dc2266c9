"""assert_enqueued: what fits, and what a failing assertion tells."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
import shop

from rota import UnknownTask
from rota.errors import TaskError
from rota.testing import manual


@pytest.fixture
def jobs():
    with manual(shop.app) as kit:
        yield kit


async def test_a_job_is_found_by_task_and_by_part_of_its_arguments(jobs):
    await shop.send_email.enqueue("ann@example.org", template="bill")

    job = jobs.assert_enqueued(shop.send_email, {"to": "ann@example.org"})

    assert job.payload == {"to": "ann@example.org", "template": "bill"}
    assert jobs.assert_enqueued("send_email", {"template": "bill"}) == job
    assert jobs.assert_enqueued() == job


async def test_defaults_count_as_arguments(jobs):
    await shop.send_email.enqueue("ann@example.org")

    jobs.assert_enqueued(shop.send_email, {"template": "welcome", "copies": 1})


async def test_values_are_compared_as_the_handler_gets_them_or_as_json(jobs):
    await shop.ship.enqueue(shop.Address("High Street 1", "Leeds"), date(2026, 3, 1))

    jobs.assert_enqueued(shop.ship, {"day": date(2026, 3, 1), "weight": Decimal("1.5")})
    jobs.assert_enqueued(shop.ship, {"day": "2026-03-01"})
    jobs.assert_enqueued(shop.ship, {"address": shop.Address("High Street 1", "Leeds")})
    jobs.assert_enqueued(shop.ship, {"address": {"city": "Leeds"}})
    jobs.assert_enqueued(shop.ship, {"day": lambda day: day.year == 2026})
    jobs.assert_not_enqueued(shop.ship, {"address": {"city": "York"}})
    jobs.assert_not_enqueued(shop.ship, {"address": {"country": "UK"}})


async def test_options_narrow_the_search(jobs):
    await shop.send_email.using(
        queue="slow", tenant="acme", subject="site:1", key="k", priority=7, tags=["a", "b"]
    ).enqueue("ann@example.org")

    terms = {"queue": "slow", "tenant": "acme", "subject": "site:1", "key": "k", "priority": 7, "tags": ["a"]}
    jobs.assert_enqueued(shop.send_email, **terms)
    jobs.assert_enqueued(state="pending")
    for name, other in (terms | {"tags": ["c"], "priority": 8}).items():
        wrong = other if name in {"tags", "priority"} else f"not {other}"
        jobs.assert_not_enqueued(shop.send_email, **{name: wrong})


async def test_times_counts_jobs_and_not_calls(jobs):
    for _ in range(2):
        await shop.send_email.using(key="welcome:ann").enqueue("ann@example.org")
    await shop.send_email.enqueue("bob@example.org")

    jobs.assert_enqueued(shop.send_email, times=2)
    jobs.assert_enqueued(shop.send_email, {"to": "ann@example.org"}, times=1)
    assert len(jobs.enqueued(queue="mail")) == 2


async def test_jobs_are_found_in_any_state(jobs):
    await shop.send_email.enqueue("ann@example.org")
    await jobs.drain()

    jobs.assert_enqueued(shop.send_email, state="completed")
    jobs.assert_not_enqueued(shop.send_email, state="pending")


async def test_a_failing_assertion_lists_what_was_enqueued_and_how_it_differs(jobs):
    await shop.send_email.using(delay="5m", tenant="acme", key="k").enqueue("ann@example.org")
    await shop.charge_by_key.enqueue(5)

    with pytest.raises(AssertionError) as failed:
        jobs.assert_enqueued(shop.send_email, {"to": "bob@example.org", "copies": 2}, queue="slow", times=2)

    differs = (
        'queue is "mail", not "slow"; to is "ann@example.org", not "bob@example.org"; copies is 1, not 2'
    )
    assert str(failed.value).splitlines() == [
        'expected 2 jobs of send_email(to="bob@example.org", copies=2) with queue "slow", but none was enqueued.',
        "What was enqueued (2 in all):",
        "  send_email(to=\"ann@example.org\") in queue 'mail', key 'k', tenant 'acme': scheduled in 300 s   <- "
        + differs,
        "  charge_by_key(cents=5) in queue 'default': pending",
    ]


def test_a_failing_assertion_says_so_when_nothing_was_enqueued(jobs):
    with pytest.raises(AssertionError, match=r"but none was enqueued. Nothing was enqueued at all."):
        jobs.assert_enqueued(shop.send_email)


async def test_too_many_are_as_wrong_as_too_few(jobs):
    await shop.send_email.enqueue_many([(str(number),) for number in range(25)])

    with pytest.raises(
        AssertionError, match=r"expected 1 job of send_email\(\), but 25 were enqueued(?s:.*)and 5 more"
    ):
        jobs.assert_enqueued(shop.send_email, times=1)


async def test_assert_not_enqueued_lists_what_should_not_be_there(jobs):
    jobs.assert_not_enqueued()
    await shop.send_email.enqueue("ann@example.org")

    with pytest.raises(
        AssertionError, match=r'expected no job of send_email\(\), but 1 was(?s:.*)to="ann@example.org"'
    ):
        jobs.assert_not_enqueued(shop.send_email)


def test_a_slip_in_the_question_is_no_answer(jobs):
    with pytest.raises(
        TaskError, match=r"send_email has no parameter 'too' to look for; did you mean 'to'\?"
    ):
        jobs.assert_not_enqueued(shop.send_email, {"too": "ann@example.org"})
    with pytest.raises(UnknownTask, match="did you mean 'send_email'"):
        jobs.assert_not_enqueued("send_emial")
    with pytest.raises(TypeError, match="unexpected keyword argument 'ques'"):
        jobs.assert_not_enqueued(shop.send_email, ques="mail")
    with pytest.raises(
        ValueError, match=r"there is no state 'scheduled'; choose one of pending, .* due later is pending"
    ):
        jobs.assert_enqueued(shop.send_email, state="scheduled")
    with pytest.raises(AssertionError, match="Nothing was enqueued at all"):
        jobs.assert_enqueued(shop.send_email, state=None)
    with pytest.raises(TypeError, match="name the task as well"):
        jobs.assert_enqueued(None, {"to": "ann@example.org"})
    with pytest.raises(TypeError, match="assert_not_enqueued"):
        jobs.assert_enqueued(shop.send_email, times=0)
