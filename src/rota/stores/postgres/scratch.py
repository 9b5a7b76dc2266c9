"""Databases for tests: made empty, emptied again, and dropped."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from rota.stores.postgres.faults import explained
from rota.stores.postgres.sqlfiles import statement

PREFIX = "rota_test_"


@contextmanager
def scratch_database(server: str) -> Iterator[str]:
    """The address of an empty database on this server, which is dropped at the end, whoever is still in it."""
    name = PREFIX + secrets.token_hex(6)
    _execute(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        _execute(server, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def empty(url: str) -> None:
    """Remove everything that Rota keeps in this database, but for its schema."""
    _execute(url, sql.SQL(statement("empty")))


def _execute(url: str, command: sql.SQL | sql.Composed) -> None:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            connection.execute(command)
    except (psycopg.Error, OSError) as error:
        raise explained(error, url) from error
