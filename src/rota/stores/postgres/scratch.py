"""Databases for tests and benchmarks: made empty, emptied again, and dropped."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from rota.config import masked
from rota.errors import PermissionMissing, StoreError
from rota.stores.postgres.faults import explained
from rota.stores.postgres.sqlfiles import statement

PREFIX = "rota_test_"


@contextmanager
def scratch_database(server: str, prefix: str = PREFIX) -> Iterator[str]:
    """The address of an empty database on this server, which is dropped at the end, whoever is still in it."""
    name = prefix + secrets.token_hex(6)
    try:
        _execute(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except PermissionMissing as error:  # to work with Rota's tables is another right
        raise PermissionMissing(
            f"the role of {masked(server)} may not make a database, and a database of its own is needed here. Let an "
            "administrator say ALTER ROLE … CREATEDB, or give the address of a role that may."
        ) from error
    except KeyboardInterrupt:  # the server may have made it all the same
        _drop(server, name)
        raise
    try:
        url = _address_of(server, name)
        _lead_there(url, name)
        yield url
    finally:
        _drop(server, name)


def _address_of(server: str, name: str) -> str:
    """Another database of this server. A `dbname` among the parameters would win over the path, and goes."""
    parts = urlsplit(server)
    kept = [one for one in parts.query.split("&") if one.partition("=")[0] != "dbname"]
    return parts._replace(path=f"/{name}", query="&".join(kept)).geturl()


def _lead_there(url: str, name: str) -> None:
    """Refuse an address that ends elsewhere, as a pooler's may: what is there would be filled and emptied."""
    reached = _execute(url, sql.SQL("SELECT current_database()"))
    if reached != name:
        raise StoreError(
            f"{masked(url)} leads to the database {reached!r} and not to {name!r}, which was made to be filled and "
            "emptied; nothing was changed. Give the address of the server itself, without a pooler."
        )


def _drop(server: str, name: str) -> None:
    _execute(server, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def empty(url: str) -> None:
    """Remove everything that Rota keeps in this database, but for its schema."""
    _execute(url, sql.SQL(statement("empty")))


def _execute(url: str, command: sql.SQL | sql.Composed) -> object:
    """What the command answers first, if it answers."""
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            cursor = connection.execute(command)
            row = cursor.fetchone() if cursor.description else None
            return None if row is None else row[0]
    except (psycopg.Error, OSError) as error:
        raise explained(error, url) from error
