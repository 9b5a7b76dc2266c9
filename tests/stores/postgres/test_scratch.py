"""Databases that are made to be filled and emptied: never one that was there before."""

from __future__ import annotations

from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
import pytest

from rota.errors import PermissionMissing, StoreError
from rota.stores.opening import scratch_database


@contextmanager
def left_alone(server: str):
    """The server has the same databases afterwards."""
    with psycopg.connect(server, autocommit=True) as connection:
        names = "SELECT datname FROM pg_database WHERE datname LIKE 'rota_alone_%' ORDER BY datname"
        before = connection.execute(names).fetchall()
        yield
        assert connection.execute(names).fetchall() == before


def with_parameter(url: str, parameter: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{parameter}"


def test_a_database_among_the_parameters_is_not_the_one_that_is_filled(cluster):
    server = with_parameter(cluster, "dbname=postgres")
    with left_alone(cluster), scratch_database(server, "rota_alone_") as url:
        with psycopg.connect(url) as connection:
            [reached] = connection.execute("SELECT current_database()").fetchone()

        assert reached.startswith("rota_alone_")


def test_an_address_that_ends_in_another_database_is_refused_before_anything_is_done_there(cluster):
    server = with_parameter(cluster, "db%6eame=postgres")  # as a pooler that has one database for all names
    with (
        left_alone(cluster),
        pytest.raises(StoreError, match="leads to the database 'postgres' and not to 'rota_alone_"),
        scratch_database(server, "rota_alone_"),
    ):
        pytest.fail("it was given away")


def test_a_role_that_may_not_make_databases_is_told_which_right_it_lacks(cluster, administrator):
    administrator.execute("CREATE ROLE rota_alone LOGIN PASSWORD 'alone'")
    try:
        parts = urlsplit(cluster)
        server = parts._replace(netloc=f"rota_alone:alone@{parts.netloc.rpartition('@')[2]}").geturl()
        with pytest.raises(PermissionMissing, match="ALTER ROLE … CREATEDB"), scratch_database(server):
            pytest.fail("it was made")
    finally:
        administrator.execute("DROP ROLE rota_alone")
