"""The checker on schedules, sums and tenants: content with a good run, and finds each wrong that is planted in one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chaos.calendar import Fired
from chaos.canaries import Shown, canary, silent
from chaos.checker import check
from chaos.evidence import Evidence, Outage
from chaos.facts import Tables, Tried
from chaos.fleet import Death, Freeze
from chaos.journal import Entry
from chaos.sums import Sums

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
TICK = Fired("nightly", NOON, "job", NOON + timedelta(seconds=1))
DUE = [("nightly", NOON)]
SUMS = Sums(
    {"completed": 2, "pending": 1, "dead": 1},
    {"pending": 1, "dead": 1},
    {("mail", "completed"): 2, ("mail", "failed"): 3, ("mail", "dead"): 1},
    {("mail", "completed"): 2, ("mail", "failed"): 3, ("mail", "dead"): 1},
    (6, 6),
)
ENTRIES = [Entry(name, name) for name in "abcd"]


def scheduled(*fired: Fired, due: Any = DUE) -> list[str]:
    seen = Evidence([], [], Tables([], [], [], fired=list(fired)), due=due)
    return [f"{violation.invariant} {violation.what}" for violation in check(seen)]


def summed(sums: Sums = SUMS, entries: Any = ENTRIES, tried: Any = (), **more: Any) -> list[str]:
    """What I10 says of a run that stored nothing else."""
    seen = Evidence(list(entries), [], Tables([], list(tried), [], sums=sums), **more)
    return [violation.what for violation in check(seen) if violation.invariant == "I10"]


def test_a_tick_with_its_job_is_fine():
    assert scheduled(TICK) == []


@pytest.mark.parametrize(
    ("fired", "what"),
    [
        ((TICK, TICK._replace(job="twin")), "became 2 jobs"),
        ((), "became no job"),
        ((TICK, TICK._replace(tick=NOON - timedelta(hours=1))), "became a job, and was not due"),
        (
            (TICK, TICK._replace(schedule="other")),
            "other at 2026-05-01 12:00:00+00:00 became a job, and was not",
        ),
        ((TICK._replace(made=NOON - timedelta(seconds=1)),), "before its time"),
    ],
    ids=["twice", "missing", "too many", "unknown", "early"],
)
def test_a_tick_that_became_too_many_jobs_or_none_or_came_early_is_found(fired, what):
    [found] = scheduled(*fired)

    assert found.startswith("I8 ")
    assert what in found


def test_sums_that_add_up_are_fine():
    assert summed() == []


def test_an_enqueue_that_was_not_acknowledged_may_be_stored_or_not():
    assert summed(entries=[*ENTRIES[:3], Entry("d", None, 1)]) == []
    assert summed(entries=[*ENTRIES, Entry("e", None, 1)]) == []


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ([*ENTRIES, Entry("e", "e")], "4 jobs over all states; 5 were acknowledged"),
        (ENTRIES[:3], "at most 3 enqueued"),
        ([*ENTRIES[:3], Entry("d", None, withdrawn=True)], "at most 3 enqueued"),
    ],
)
def test_jobs_that_are_missing_in_the_sum_or_too_many_are_found(entries, what):
    [found] = summed(entries=entries)

    assert what in found


def test_a_count_that_faces_show_and_that_is_not_what_is_stored_is_found():
    [found] = summed(SUMS._replace(shown={"pending": 2, "dead": 1}))

    assert found == "shown as {'pending': 2, 'dead': 1}, stored as {'pending': 1, 'dead': 1}"


@pytest.mark.parametrize("what", ["states", "shown", "happened", "counted", "split"])
def test_what_could_not_be_read_is_unknown_and_never_taken_for_zero(what):
    assert summed(SUMS._replace(**{what: None})) == [f"{what} could not be read: unknown, and not zero"]


def test_more_counted_than_happened_is_always_wrong():
    counted = {**SUMS.counted, ("mail", "completed"): 3}
    killed = [Death(10, 101.0, -9, wanted=True)]

    for hurt in ({}, {"deaths": killed}):
        assert summed(SUMS._replace(counted=counted), **hurt) == [
            "3 attempts of mail counted as completed, and only 2 were"
        ]


def test_less_counted_than_happened_is_wrong_where_nobody_was_hurt():
    less = SUMS._replace(counted={("mail", "completed"): 1, ("mail", "failed"): 3, ("mail", "dead"): 1})

    assert summed(less) == ["1 attempts of mail counted as completed, 2 were, and nobody was hurt"]
    assert summed(less, deaths=[Death(10, 101.0, 0, wanted=True)]) != [], (
        "who says goodbye tells what he counted"
    )
    assert summed(less, deaths=[Death(10, 101.0, -9, wanted=True)]) == []
    assert summed(less, freezes=[Freeze(10, 100.0, 120.0)]) == []
    assert summed(less, outages=[Outage(100.0, 120.0)]) == []
    assert summed(less, answered=False) == []
    assert summed(less, tried=[Tried("job", 2, 1, "suspect", "crash", "first", 99.9, 115.5)]) == []


def test_tenants_that_do_not_add_up_to_the_whole_are_found():
    assert summed(SUMS._replace(split=(6, 5))) == ["6 attempts by task, and 5 by tenant"]


def shown_to(tenant: str | None, text: str) -> list[str]:
    seen = Evidence(
        [], [], Tables([], [], []), shown=[Shown("jobs list", tenant, text)], tenants=("red", "blue")
    )
    return [f"{violation.invariant} {violation.what}" for violation in check(seen)]


def test_a_word_of_another_tenant_is_found_and_ones_own_is_fine():
    assert shown_to("red", f"a job about {canary('red')}") == []
    assert shown_to("red", f"a job about {canary('blue')}") == [
        "I11 jobs list shows red something of blue: …a job about canary-blue…"
    ]


def test_what_everybody_may_read_names_no_tenant():
    assert shown_to(None, 'rota_jobs{queue="default"} 3') == []
    assert shown_to(None, f'rota_jobs{{queue="{canary("red")}"}} 3') != []


def test_a_surface_that_shows_a_tenant_nothing_of_his_own_is_named():
    assert silent([Shown("jobs list", "red", "nothing"), Shown("audit", "red", canary("red"))]) == [
        "jobs list"
    ]
    assert silent([Shown("metrics", None, "")]) == []
