"""The proxy itself: it cuts where it says, in every way a client can commit."""

from __future__ import annotations

import select
import time

import psycopg
import pytest

from chaos.proxy import Cut


@pytest.fixture
def table(fresh_database):
    """A table on the straight way to the database."""
    with psycopg.connect(fresh_database, autocommit=True) as straight:
        straight.execute("CREATE TABLE mark (n integer)")
        yield straight


def marks(table) -> int:
    return table.execute("SELECT count(*) FROM mark").fetchone()[0]


def about_marks(cut):
    """A rule that cuts the first commit that touches the table."""
    left = [cut]

    def rule(commit):
        return left.pop() if left and "mark" in commit.sql else None

    return rule


def simple(url):
    """A simple query in autocommit mode: psycopg sends it so in a pipeline's absence and without parameters."""
    with psycopg.connect(url, autocommit=True) as client:
        psycopg.ClientCursor(client).execute("INSERT INTO mark VALUES (%s)", [1])


def extended(url):
    with psycopg.connect(url, autocommit=True) as client:
        client.execute("INSERT INTO mark VALUES (%s)", [1])


def prepared(url):
    with psycopg.connect(url, autocommit=True) as client:
        client.execute("SELECT 1")
        client.execute("INSERT INTO mark VALUES (%s)", [1], prepare=True)


def transaction(url):
    with psycopg.connect(url, autocommit=True) as client, client.transaction():
        client.execute("INSERT INTO mark VALUES (%s)", [1])


def copy(url):
    with psycopg.connect(url) as client, client.cursor().copy("COPY mark FROM STDIN") as lines:
        lines.write_row([1])


WAYS = [simple, extended, prepared, transaction, copy]


@pytest.mark.parametrize("way", WAYS)
def test_without_a_rule_everything_passes(proxy, table, way):
    way(proxy.url)

    assert marks(table) == 1
    assert proxy.cuts == []


@pytest.mark.parametrize("way", WAYS)
def test_a_cut_before_the_commit_leaves_nothing(proxy, table, way):
    proxy.rule = about_marks(Cut.BEFORE)

    with pytest.raises(psycopg.OperationalError):
        way(proxy.url)
    assert [cut for cut, _ in proxy.cuts] == [Cut.BEFORE]
    way(proxy.url)
    assert marks(table) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_cut_after_the_commit_loses_only_the_answer(proxy, table, way):
    proxy.rule = about_marks(Cut.AFTER)

    with pytest.raises(psycopg.OperationalError):
        way(proxy.url)
    assert marks(table) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_cut_during_the_commit_has_one_end_or_the_other(proxy, table, way):
    proxy.rule = about_marks(Cut.DURING)

    with pytest.raises(psycopg.OperationalError):
        way(proxy.url)
    assert marks(table) in (0, 1)


def test_a_rule_sees_all_statements_of_a_transaction(proxy, table):
    seen = []
    proxy.rule = lambda commit: seen.append(commit.sql)

    transaction(proxy.url)

    assert [sql for sql in seen if "mark" in sql] == ["BEGIN\nINSERT INTO mark VALUES ($1)\nCOMMIT"]


def test_a_server_that_is_down_is_refused_like_a_dead_address(proxy):
    proxy._upstream = "postgresql://rota@127.0.0.1:1/none"

    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(proxy.url)


def test_a_hole_swallows_and_afterwards_old_connections_stay_silent_and_new_ones_work(proxy, table):
    with psycopg.connect(proxy.url, autocommit=True) as client:
        client.execute("SELECT 1")
        with proxy.vanished():
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(proxy.url, connect_timeout=2)
            client.pgconn.send_query(b"INSERT INTO mark VALUES (1)")
            client.pgconn.flush()
        extended(proxy.url)

        assert select.select([client.pgconn.socket], [], [], 0.3)[0] == []
        assert marks(table) == 1
        client.pgconn.finish()


def test_one_connection_can_go_silent_and_others_not(proxy, table):
    with (
        psycopg.connect(proxy.url, autocommit=True) as ear,
        psycopg.connect(proxy.url, autocommit=True) as other,
    ):
        ear.execute("LISTEN news")
        assert proxy.silence("LISTEN news") == 1
        other.execute("NOTIFY news")

        assert list(ear.notifies(timeout=0.3)) == []
        assert other.execute("SELECT 1").fetchone() == (1,)
        ear.pgconn.finish()


@pytest.mark.parametrize("drip", [0, 3])
def test_a_slow_network_changes_nothing_but_the_time(proxy, table, drip):
    proxy.slow, proxy.drip = (lambda: 0.05), drip
    began = time.monotonic()
    transaction(proxy.url)

    assert marks(table) == 1
    assert time.monotonic() - began > 0.25
