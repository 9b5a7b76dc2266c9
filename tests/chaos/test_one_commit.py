"""A handler's own transaction: rows of the business are there exactly once, whatever is done to workers and commits."""

from __future__ import annotations

import asyncio
from collections import Counter

import psycopg
import pytest

from build import a_job, a_session
from chaos.checker import check
from chaos.proxy import Cut, Cutter
from rota._core.job import State
from rota._core.outcome import completed
from rota.errors import StoreUnavailable
from rota.stores.contract import Answer, Wanted
from rota.stores.postgres import PostgresStore

KINDS = ["books", "books_plainly", "books_apart"]


def shop(stage, seed, **options):
    run = stage(seed, **options)
    with psycopg.connect(run.url) as connection:
        connection.execute("CREATE TABLE bookings (key text, fence int)")
    return run


def bookings(run) -> list[tuple[str, int]]:
    with psycopg.connect(run.url) as connection:
        return connection.execute("SELECT key, fence FROM bookings").fetchall()


def freeze_one(run) -> None:
    """Let a worker stand still past its lease, and wake up as one that has lost its jobs."""
    pids = run.fleet.living()
    if pids:
        run.nemesis.freeze_a_worker(run.nemesis.dice.choice(pids), 4.5)


def booked_once(run, evidence) -> None:
    """One row a job, and it is of the attempt that completed it."""
    found = bookings(run)
    assert Counter(key for key, _ in found) == Counter(entry.key for entry in evidence.entries)
    # A claim made version n out of n-1, and its completion made n+1.
    assert dict(found) == {row.key: row.version - 1 for row in evidence.tables.rows}


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_rows_of_handlers_are_booked_once_while_their_workers_are_killed_and_frozen(stage, seed, long):
    run = shop(stage, seed, workers=3, slots=6, lease=3.0, beat=1.0)
    run.begin()
    for kind, count in zip(KINDS, (40, 40, 10), strict=True):
        keys = [f"{kind}-{number}" for number in range(count * (10 if long else 1))]
        run.enqueue(keys, task=kind, ms=600)
    run.nemesis.every(1.5, run.nemesis.kill_a_worker)
    run.nemesis.every(4.0, lambda: freeze_one(run))
    run.drained(300 if long else 60)

    evidence = run.verdict(within=90)

    booked_once(run, evidence)
    assert any(len(runs) > 1 for runs in evidence.runs.values()), "no handler was hit"


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_rows_of_handlers_are_booked_once_while_connections_are_cut_around_commits(stage, proxy, seed, long):
    run = shop(stage, seed, workers=2, slots=6, beat=2.0, through=proxy.url)
    proxy.rule = run.nemesis.cut_commits(0.2, "bookings")
    run.begin()
    for kind in KINDS[:2]:
        run.enqueue([f"{kind}-{number}" for number in range(300 if long else 40)], task=kind, ms=5)

    run.drained(120)
    run.close()
    evidence = run.gathered()

    booked_once(run, evidence)
    assert {cut for cut, _ in proxy.cuts} == set(Cut)
    # An attempt whose commit was cut has failed although its handler returned: the one thing that is otherwise wrong.
    assert {violation.invariant for violation in check(evidence)} <= {"I3", "I7"}


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
async def test_a_commit_whose_answer_was_lost_is_known_by_asking(proxy, fresh_database, cut, kind):
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE bookings (key text, fence int)")
    store = PostgresStore(proxy.url)
    await store.enqueue([a_job()])
    [job] = await store.claim(Wanted(1), session=await a_session(store))
    own = store.own_transaction(job)
    if kind == "coroutine":
        async with own as connection:
            await connection.execute("INSERT INTO bookings VALUES ('a', 1)")
    else:

        def inside() -> None:
            with own as connection:
                connection.execute("INSERT INTO bookings VALUES ('a', 1)")

        await asyncio.to_thread(inside)
    proxy.rule = Cutter("bookings", cut)

    try:
        said = str((await own.complete(completed(job))).answer)
    except StoreUnavailable as error:
        said = str(error)
        await own.undo()

    assert proxy.rule.done
    assert (Answer.APPLIED if cut is Cut.AFTER else "could not be committed, so nothing of it stays") in said
    with psycopg.connect(fresh_database) as connection:
        rows = connection.execute("SELECT count(*) FROM bookings").fetchone()
    assert rows == (1 if cut is Cut.AFTER else 0,)
    [after] = await store.get([job.id])
    assert after.state is (State.COMPLETED if cut is Cut.AFTER else State.RUNNING)
    await store.close()
