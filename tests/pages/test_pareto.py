"""What breaks most? Exceptions, the one that killed most jobs first, on the page of failures."""

from __future__ import annotations

from build import NOON, Clock, a_job, a_session, claim
from page_kit import paged, words
from rota._core.dead_letter import FailureGroup
from rota._core.failure import ErrorClass, Failure
from rota._core.outcome import Raised, decide
from rota._core.retry import Retry
from rota.stores.memory import MemoryStore
from rota.web.pages.pareto import pareto


def a_group(error_type: str | None, letters: int, error_class: str | None = None) -> FailureGroup:
    known = {"error_type": error_type, "error_class": error_class, "letters": letters}
    blank = dict.fromkeys(FailureGroup._fields)
    return FailureGroup(**(blank | {"first_seen": NOON, "last_seen": NOON} | known))


async def dies(store: MemoryStore, task: str, error: str, times: int) -> None:
    await store.enqueue([a_job(task) for _ in range(times)])
    failure = Failure(ErrorClass.NON_RETRYABLE, error, "no", "Traceback: no")
    now = await store.now()
    for job in await claim(store, await a_session(store, lease=1e6)):
        await store.settle([decide(job, Raised(failure), retry=Retry(), now=now)])


def test_groups_of_one_exception_are_one_and_shares_add_up():
    found = pareto(
        [
            a_group("KeyError", 2),
            a_group("OSError", 5),
            a_group("KeyError", 4),
            a_group(None, 1),
            a_group(None, 0, "lost"),
        ],
        10,
    )

    assert [(cause.name, cause.jobs, cause.groups) for cause in found] == [
        ("KeyError", 6, 2),
        ("OSError", 5, 1),
        ("unknown error", 1, 1),
        ("lost", 0, 1),
    ]
    assert [round(cause.together or 0.0, 2) for cause in found] == [0.5, 0.92, 1.0, 1.0]


def test_shares_are_unknown_where_a_group_was_not_counted_to_its_end():
    """Sixty thousand were counted up to ten: nobody knows how much of it all that is."""
    first, second = pareto([a_group("KeyError", 10), a_group("OSError", 5)], 10)

    assert (first.jobs, first.capped, first.share, first.together) == (10, True, None, None)
    assert (second.jobs, second.capped, second.share, second.together) == (5, False, None, None)


def test_only_the_first_ten_are_shown_and_nothing_is_no_error():
    assert len(pareto([a_group(f"Error{number}", 1) for number in range(30)], 10)) == 10
    assert pareto([], 10) == []


async def test_the_page_of_failures_ranks_exceptions_and_says_so_in_numbers(clock: Clock):
    async with paged(MemoryStore(clock=clock)) as site:
        await dies(site.store, "mail", "OSError", 3)
        await dies(site.store, "report", "OSError", 1)
        await dies(site.store, "report", "KeyError", 1)

        page = words(await (await site.visitor("viewer")).get("/failures"))

    assert "What breaks most by exception, whatever task it was in" in page
    assert "OSError 4 80 % of these jobs 80 % 80 % 2" in page
    assert "KeyError 1 20 % of these jobs 20 % 100 % 1" in page
