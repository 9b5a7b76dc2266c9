"""The numbers that the system gives of itself, beside what can be counted in its tables.

A worker counts an end once it is written, and tells the store about every ten
seconds and when it stops. What it had counted and not told dies with it. So the
promise is: never more than really happened, and exactly that much where no
worker was killed or frozen, and none missed an answer of the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import psycopg

from rota.stores.postgres.sqlfiles import statement

STATES = "SELECT state, count(*) FROM rota.all_jobs GROUP BY 1"
HAPPENED = """
SELECT task, state, count(*) FROM rota.finished_jobs WHERE state IN ('completed', 'partial') GROUP BY 1, 2
UNION ALL
SELECT j.task, CASE a.outcome WHEN 'die' THEN 'dead' ELSE 'failed' END, count(*)
FROM rota.failed_attempts AS a JOIN rota.all_jobs AS j ON j.id = a.job_id
WHERE a.outcome IN ('retry', 'suspect', 'die') GROUP BY 1, 2
"""
COUNTED = """
SELECT task, ending, sum(jobs)::bigint FROM rota.minutes
WHERE ending IN ('completed', 'partial', 'failed', 'dead') GROUP BY 1, 2
"""
BY_TENANT = """
SELECT (SELECT sum(jobs)::bigint FROM rota.minutes WHERE ending <> 'snoozed'),
       (SELECT sum(jobs)::bigint FROM rota.tenant_minutes)
"""

Kind = tuple[str, str]
"""A task, and how attempts of it ended."""


class Sums(NamedTuple):
    """What was counted, two ways. None: it could not be read, which is not the same as none."""

    states: Mapping[str, int] | None
    """Jobs by state, straight from the tables."""
    shown: Mapping[str, int] | None
    """Unfinished and dead jobs by state, as every face shows them."""
    happened: Mapping[Kind, int] | None
    """Attempts by their end, from the jobs and attempts themselves."""
    counted: Mapping[Kind, int] | None
    """The same from the minutes that workers told."""
    split: tuple[int, int] | None = None
    """All attempts of the minutes: added up over tasks, and over tenants."""


def read_sums(connection: psycopg.Connection) -> Sums:
    def asked(query: str, **parameters: Any) -> list[Any] | None:
        try:
            return connection.execute(query, parameters or None).fetchall()
        except psycopg.Error:
            return None

    def kinds(query: str) -> Mapping[Kind, int] | None:
        rows = asked(query)
        if rows is None:
            return None
        found: dict[Kind, int] = {}
        for task, ending, jobs in rows:
            found[task, ending] = found.get((task, ending), 0) + jobs
        return found

    states, shown, split = asked(STATES), asked(statement("counts"), cap=1_000_000), asked(BY_TENANT)
    return Sums(
        None if states is None else dict(states),
        None if shown is None else _by_state(shown),
        kinds(HAPPENED),
        kinds(COUNTED),
        None if split is None else (split[0][0] or 0, split[0][1] or 0),
    )


def _by_state(rows: list[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for _queue, _task, state, jobs, *_ in rows:
        found[state] = found.get(state, 0) + jobs
    return found


def wrong_sums(sums: Sums, *, acked: int, possible: int, exact: bool) -> list[str]:
    """What does not add up. So many enqueues were acknowledged; so many jobs there may be at most.

    `exact`: nobody was killed, frozen or cut off, so every end must have been counted.
    """
    unknown = [name for name, value in zip(Sums._fields, sums, strict=True) if value is None]
    if unknown:
        return [f"{', '.join(unknown)} could not be read: unknown, and not zero"]
    assert sums.states is not None and sums.shown is not None  # noqa: PT018 - for the type checker
    assert sums.happened is not None and sums.counted is not None  # noqa: PT018
    assert sums.split is not None
    faults = []
    stored = sum(sums.states.values())
    if not acked <= stored <= possible:
        faults.append(
            f"{stored} jobs over all states; {acked} were acknowledged, at most {possible} enqueued"
        )
    open_ends = {state: jobs for state, jobs in sums.states.items() if state in OPEN}
    if open_ends != dict(sums.shown):
        faults.append(f"shown as {dict(sums.shown)}, stored as {open_ends}")
    for task, ending in sorted(sums.happened.keys() | sums.counted.keys()):
        really, told = sums.happened.get((task, ending), 0), sums.counted.get((task, ending), 0)
        if told > really:
            faults.append(f"{told} attempts of {task} counted as {ending}, and only {really} were")
        elif exact and told < really:
            faults.append(
                f"{told} attempts of {task} counted as {ending}, {really} were, and nobody was hurt"
            )
    if sums.split[0] != sums.split[1]:
        faults.append(f"{sums.split[0]} attempts by task, and {sums.split[1]} by tenant")
    return faults


OPEN = ("pending", "blocked", "held", "running", "dead")
