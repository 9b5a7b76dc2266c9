"""assert_survives_crashes: which tasks do their work once wherever they are hit, and what is said of the others."""

from __future__ import annotations

import sys
from unittest.mock import Mock

import psycopg
import pytest
import shop

from build import a_session
from rota import Rota, RotaError, current_job
from rota.stores.postgres import PostgresStore
from rota.testing import assert_survives_crashes, assert_survives_crashes_sync, database
from rota.testing.survival import Point, _chosen

pytestmark = pytest.mark.slow  # every task is run once for every line of it


async def survives(task, *args, **options):
    """With the bank as the outside world."""
    return await assert_survives_crashes(
        task, *args, effects=lambda: list(shop.bank.charges), reset=shop.bank.clear, **options
    )


async def told_of(task, *args, **options) -> str:
    """What the failing assertion says."""
    with pytest.raises(AssertionError) as failed:
        await survives(task, *args, **options)
    return str(failed.value)


async def test_a_task_that_gives_its_effect_key_survives_a_crash_at_every_line():
    survival = await survives(shop.charge_by_key, 5)

    kinds = [point.kind for point in survival.tried]
    assert kinds == ["begun", "line", "line", "line", "returned", "settled"]
    assert str(survival) == "charge_by_key survives a crash at each of 6 crash points."


async def test_a_task_that_does_not_is_told_where_it_does_something_twice():
    told = await told_of(shop.charge_blindly, 5)

    assert told.startswith("charge_blindly does not survive a crash at 2 of 5 crash points:\n")
    assert "shop.py: await asyncio.sleep(0)\n      done twice: 5\n" in told
    assert "crash after the function had ended, before Rota wrote that down\n      done twice: 5\n" in told
    assert "current_job().effect_key" in told


def test_the_same_without_async():
    assert_survives_crashes_sync(
        shop.charge_each_by_key, 3, effects=lambda: shop.bank.charges.copy(), reset=shop.bank.clear
    )


async def test_a_task_in_a_thread_is_crashed_in_every_round_of_its_loop():
    told = await told_of(shop.charge_each_blindly, 3)

    assert "bank.charge(number) (time 3)\n      done twice: 0\n      done twice: 1\n" in told


async def test_cleanup_does_not_run_in_a_process_that_is_dead():
    """A `finally` or an `except` that puts things right is no help against a crash, so it must not help here."""
    assert "ended otherwise: the job is dead, not completed: somebody else has the lock" in await told_of(
        shop.charge_under_lock, 5
    )
    await survives(
        shop.charge_and_refund, 5
    )  # the key makes the repeat harmless; the refund is never reached


@pytest.mark.parametrize("task", [shop.charge_in_a_with, shop.charge_in_an_async_with])
async def test_a_with_of_the_users_own_is_not_left_by_a_process_that_is_dead(task):
    told = await told_of(task, 5)

    # Inside the block, and between its last line and its exit.
    assert (
        "bank.charge(cents, current_job().effect_key)\n      lost: 5\n      ended otherwise: the job is dead"
        in told
    )
    assert "with locked" in told


async def test_work_that_must_not_be_repeated_may_be_lost_but_not_done_twice():
    await survives(shop.charge_once_at_most, 5)


async def test_a_task_with_one_attempt_loses_it_to_the_crash():
    told = await told_of(shop.charge_in_one_attempt, 5)

    assert "lost: 5" in told
    assert "because: it has one attempt only, and the crash took it" in told


async def test_jobs_that_it_enqueues_are_effects_too():
    told = await told_of(shop.invite_twice, "ann")

    assert (
        'crash after enqueue\n      enqueued twice: send_email {"to":"ann@example.org"} in queue mail' in told
    )
    await survives(shop.invite_once, "ann")


async def test_functions_that_it_calls_happen_as_a_whole_unless_they_are_named():
    plain = await survives(shop.charge_through_a_function, 5)
    deeper = await survives(shop.charge_through_a_function, 5, within=[shop.pay])
    deepest = await told_of(shop.charge_through_a_function, 5, within=[shop.pay, shop.Bank])

    assert not any("bank.charge" in point.detail for point in plain.points)
    assert any("bank.charge" in point.detail for point in deeper.points)
    assert "self.keys.add(key)\n      done twice: 5" in deepest  # the fake itself is not atomic


async def test_a_whole_module_can_be_named():
    survival = await survives(shop.charge_through_a_function, 5, within=[sys.modules["json"]])

    assert len(survival.points) == 4


async def test_calls_can_be_named_as_points():
    survival = await survives(shop.charge_by_key, 5, at=[shop.Bank.charge])

    assert Point("before", "shop.Bank.charge") in survival.tried
    assert Point("after", "shop.Bank.charge") in survival.tried
    with pytest.raises(AssertionError, match=r"charge_by_key never calls shop.Bank.lock"):
        await survives(shop.charge_by_key, 5, at=[shop.Bank.lock])


async def test_a_task_that_fails_without_any_crash_is_said_to():
    with pytest.raises(AssertionError, match="without any crash it is dead: no such order"):
        await survives(shop.broken)


async def test_a_task_that_is_retried_by_itself_is_crashed_in_each_attempt():
    survival = await survives(shop.flaky, 1)

    assert [point.kind for point in survival.points].count("begun") == 2


async def test_effects_must_be_brought_back_between_runs():
    shop.bank.clear()

    with pytest.raises(RotaError, match=r"Before the first it told \[\], now \[5\]. Give a reset="):
        await assert_survives_crashes(shop.charge_by_key, 5, effects=lambda: list(shop.bank.charges))


async def test_effects_of_any_kind_are_compared():
    ledger: dict[str, int] = {}
    app = Rota()

    @app.task
    async def add(cents: int) -> None:
        ledger["ann"] = ledger.get("ann", 0) + cents

    with pytest.raises(AssertionError) as failed:
        await assert_survives_crashes(add, 5, effects=ledger.copy, reset=ledger.clear)
    assert "done besides: 'ann': 10\n      lost: 'ann': 5" in str(failed.value)
    with pytest.raises(AssertionError, match="other effects: 10, not 5"):
        await assert_survives_crashes(add, 5, effects=lambda: ledger.get("ann"), reset=ledger.clear)


async def test_the_tracer_of_others_is_put_back():
    before = sys.gettrace(), sys.getprofile()
    await told_of(shop.charge_blindly, 5)

    assert (sys.gettrace(), sys.getprofile()) == before


def test_of_many_points_the_first_and_last_of_each_place_are_tried():
    points = [Point("begun"), *(Point("line", str(n % 3)) for n in range(300)), Point("returned")]

    chosen = _chosen(points, 20)

    assert len(chosen) == 20
    assert {0, 1, 2, 3, 298, 299, 300, 301} <= set(chosen)
    assert _chosen(points[:5], 20) == [0, 1, 2, 3, 4]


async def test_points_that_were_left_out_are_said_to_be():
    survival = await survives(shop.charge_each_by_key, 30, most=10)

    assert "10 crash points (54 more were left out)" in str(survival)


# In a database of their own


@pytest.fixture
def orders(fresh_database):
    """A table of orders, and tasks that write it."""
    app = Rota()
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, paid int NOT NULL DEFAULT 0)")

    @app.task
    def in_one_transaction(order: int) -> None:
        with psycopg.connect(fresh_database) as connection, connection.transaction():
            connection.execute("INSERT INTO orders (id) VALUES (%s) ON CONFLICT DO NOTHING", [order])
            connection.execute("UPDATE orders SET paid = 1 WHERE id = %s", [order])

    @app.task
    async def in_two_transactions(order: int) -> None:
        async with await psycopg.AsyncConnection.connect(fresh_database) as connection:
            await connection.execute("INSERT INTO orders (id) VALUES (%s) ON CONFLICT DO NOTHING", [order])
            await connection.commit()
            await connection.execute("UPDATE orders SET paid = paid + 1 WHERE id = %s", [order])

    @app.task
    def confirmed_in_the_same_transaction(order: int) -> None:
        with psycopg.connect(fresh_database) as connection:
            new = connection.execute("INSERT INTO orders (id) VALUES (%s) ON CONFLICT DO NOTHING", [order])
            if new.rowcount:
                mail.using(tx=connection).enqueue_sync(order)

    @app.task
    def mail(order: int) -> None: ...

    def rows():
        with psycopg.connect(fresh_database) as connection:
            return connection.execute("SELECT id, paid FROM orders").fetchall()

    def clear():
        with psycopg.connect(fresh_database, autocommit=True) as connection:
            connection.execute("TRUNCATE orders")

    @app.task
    async def with_its_own_end(order: int) -> None:
        async with current_job().transaction() as connection:
            await connection.execute("INSERT INTO orders (id) VALUES (%s)", [order])

    @app.task
    def with_its_own_end_in_a_thread(order: int) -> None:
        with current_job().transaction() as connection:
            connection.execute("INSERT INTO orders (id) VALUES (%s)", [order])

    app.rows, app.clear, app.url = rows, clear, fresh_database
    return app


@pytest.mark.parametrize("task", ["with_its_own_end", "with_its_own_end_in_a_thread"])
async def test_a_transaction_that_ends_with_its_job_needs_nothing_else_to_survive(orders, task):
    survival = await assert_survives_crashes(
        orders.tasks[task], 7, effects=orders.rows, reset=orders.clear, url=orders.url
    )

    assert {"begun", "line", "returned", "settled"} <= {point.kind for point in survival.tried}


async def test_commits_are_crash_points_before_and_after(orders):
    survival = await assert_survives_crashes(
        orders.tasks["in_one_transaction"], 7, effects=orders.rows, reset=orders.clear
    )

    assert {"before psycopg.Transaction.__exit__", "after psycopg.Transaction.__exit__"} <= set(
        map(str, survival.tried)
    )


async def test_work_in_two_transactions_is_found_to_be_half_done_twice(orders):
    with pytest.raises(AssertionError) as failed:
        await assert_survives_crashes(
            orders.tasks["in_two_transactions"], 7, effects=orders.rows, reset=orders.clear
        )

    assert (
        "crash after psycopg.AsyncConnection.commit (time 2)\n      done besides: (7, 2)\n      lost: (7, 1)"
        in str(failed.value)
    )


async def test_jobs_of_a_transaction_are_judged_on_a_real_store(orders):
    await assert_survives_crashes(
        orders.tasks["confirmed_in_the_same_transaction"],
        7,
        effects=orders.rows,
        reset=orders.clear,
        url=orders.url,
    )


async def test_a_database_with_a_living_worker_is_not_emptied_for_a_trial(orders):
    store = PostgresStore(orders.url)
    await a_session(store, "another machine")
    await store.close()

    with pytest.raises(RotaError, match=r"has a living worker .* on another machine"):
        await assert_survives_crashes(
            orders.tasks["confirmed_in_the_same_transaction"], 7, effects=orders.rows, url=orders.url
        )


async def test_a_point_that_a_run_does_not_come_by_was_not_tried():
    app, runs = Rota(), []

    @app.task
    async def fickle() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            runs.append(0)  # only the run without a crash comes here

    survival = await assert_survives_crashes(fickle, effects=lambda: None)

    assert len(survival.tried) < len(survival.points)
    assert "left out" in str(survival)


async def test_effects_that_are_one_list_for_ever_are_still_compared():
    app, done = Rota(), []

    @app.task
    async def add() -> None:
        done.append("added")

    with pytest.raises(AssertionError, match="done twice: 'added'"):
        await assert_survives_crashes(add, effects=lambda: done, reset=done.clear)
    mailer = Mock()

    @app.task
    async def send() -> None:
        mailer.send("ann")

    with pytest.raises(AssertionError, match=r"done twice: call\.send\('ann'\)"):
        await assert_survives_crashes(send, effects=lambda: mailer.mock_calls, reset=mailer.reset_mock)
    done.clear()
    with pytest.raises(RotaError, match=r"effects\(\) must tell the same before each run"):
        await assert_survives_crashes(add, effects=lambda: done)


async def test_at_least_one_point_is_tried():
    with pytest.raises(ValueError, match="most is 0; try at least 1 crash point"):
        await survives(shop.charge_each_by_key, 30, most=0)


async def test_effect_keys_are_the_same_in_every_run_of_one_trial():
    app, keys = Rota(), set()

    @app.task
    async def keep() -> None:
        keys.add(current_job().effect_key)

    await assert_survives_crashes(keep, effects=lambda: None)

    assert len(keys) == 1


@pytest.mark.slow
def test_a_database_of_ones_own_is_there_for_a_block():
    with database() as url, psycopg.connect(url) as connection:
        [(version,)] = connection.execute("SELECT max(version) FROM rota.migrations").fetchall()

    assert version >= 2
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)
