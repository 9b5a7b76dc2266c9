"""F51, F52: a job that is enqueued inside a business transaction shares its fate, whatever that is."""

from __future__ import annotations

import psycopg
import pytest

from chaos.journal import read_journals
from chaos.orders import Order

KINDS = ["psycopg", "alchemy", "alchemy_session", "async_psycopg", "async_alchemy", "async_alchemy_session"]


@pytest.fixture
def shop(stage, one_seed):
    """A stage with a table of orders, one row a job."""
    run = stage(one_seed, workers=1, slots=8)
    with psycopg.connect(run.url) as connection:
        connection.execute("CREATE TABLE orders (key text PRIMARY KEY)")
    return run


def do_business(run, seed: int, *, kinds: list[str], count: int, end: str, hold: float = 0.03) -> None:
    """Let one process of each kind do its transactions, all at the same time."""
    told = {
        kind: {"name": f"{kind}-{end}", "kind": kind, "count": count, "end": end, "seed": seed, "hold": hold}
        for kind in kinds
    }
    processes = [(kind, run.spawn("business", kind, told[kind])) for kind in kinds]
    for kind, process in processes:
        assert process.wait(timeout=120) == 0, run.complained(kind)


def orders(run) -> set[str]:
    with psycopg.connect(run.url) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM orders")}


@pytest.mark.chaos
@pytest.mark.scenario(11)
@pytest.mark.timeout(900)
def test_jobs_commit_and_roll_back_with_their_business_and_never_come_before_it(shop, one_seed, long):
    shop.begin()
    do_business(shop, one_seed, kinds=KINDS, count=200 if long else 15, end="mixed")

    evidence = shop.verdict(within=30)

    committed = {entry.key for entry in evidence.entries if entry.acked}
    assert {row.key for row in evidence.tables.rows} == committed == orders(shop)
    assert {entry.key for entry in evidence.entries if entry.withdrawn}.isdisjoint(committed)
    for kind in KINDS:
        ends = {entry.acked for entry in evidence.entries if entry.key.startswith(f"{kind}-mixed")}
        assert ends == {True, False}
    assert evidence.tables.tried == []


@pytest.mark.chaos
@pytest.mark.scenario(11)
@pytest.mark.parametrize("end", ["crash_before", "crash_after"])
def test_a_crash_around_the_commit_leaves_the_order_with_its_job_or_neither(shop, one_seed, end):
    shop.begin()
    do_business(shop, one_seed, kinds=["psycopg", "async_alchemy"], count=1, end=end)

    evidence = shop.verdict(within=30)

    wanted = {"psycopg-crash_after-0", "async_alchemy-crash_after-0"} if end == "crash_after" else set()
    assert {row.key for row in evidence.tables.rows} == orders(shop) == wanted
    assert {effect.key for effect in evidence.effects} == wanted


@pytest.mark.chaos
@pytest.mark.scenario(11)
def test_a_job_whose_wake_up_was_never_sent_is_found_by_the_poll(shop, one_seed):
    with psycopg.connect(shop.url, autocommit=True) as listener:
        listener.execute("LISTEN rota")
        shop.begin()
        do_business(shop, one_seed, kinds=["unhinted"], count=2, end="crash_after")
        hints = [
            notice.payload for notice in listener.notifies(timeout=0.5) if notice.payload.startswith("w:")
        ]

    evidence = shop.verdict(within=15)

    assert hints == ["w:100:default"]  # the first job's; the second had none
    assert {row.key for row in evidence.tables.rows} == {"unhinted-crash_after-0", "unhinted-crash_after-1"}


@pytest.mark.chaos
def test_jobs_that_become_visible_long_after_later_ones_are_not_passed_over(shop, one_seed, long):
    """A job's place in line is given when it is enqueued; its commit may come when workers are long past that place."""
    shop.begin()
    shop.produce(Order("quick", "together", 3000 if long else 600, ms=5, batch=20, pause=0.1, seed=one_seed))
    do_business(shop, one_seed, kinds=KINDS[:3], count=40 if long else 5, end="commit", hold=1.5)
    shop.produced(120)
    with psycopg.connect(shop.url, autocommit=True) as connection:
        acked = len([entry for entry in read_journals(shop.home.glob("*.journal")) if entry.acked])
        shop.until(lambda: connection.execute("SELECT count(*) FROM rota.all_jobs").fetchone() == (acked,))

    evidence = shop.verdict(within=10)

    assert {row.state for row in evidence.tables.rows} == {"completed"}
    assert {entry.key for entry in evidence.entries if entry.acked} == set(evidence.rows)
