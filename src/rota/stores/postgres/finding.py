"""Listing jobs by filter: the filter as the parameters of find.sql and its endings."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, LiteralString, TypeAlias
from uuid import UUID

import psycopg

from rota._core.job_filter import LISTED, ArgumentIs, JobFilter
from rota.stores.postgres.rows import uuids
from rota.stores.postgres.sqlfiles import statement
from rota.stores.search_contract import SearchesBusy, SearchTooWide

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections

    Ask: TypeAlias = Callable[[Connection], Awaitable[list[tuple[Any, ...]]]]

LOOKING_SECONDS = 5.0
"""So long jobs are looked at for one question; less than one try of a statement may take."""
TRUSTED = timedelta(days=1)
"""An id tells when it was made by its maker's clock: that far it may be from the store's."""
LAST = UUID(int=(1 << 128) - 1)


async def found(
    connections: Connections, wanted: JobFilter, *, counted: bool = False
) -> list[tuple[Any, ...]]:
    """The rows of the jobs that match; or, `counted`, how many there are."""
    if wanted.meant_states == ():
        return []
    order = "find_urgent" if wanted.by_priority else "find_oldest" if wanted.oldest_first else "find_newest"
    question = composed(order, "find_count" if counted else "find_brief" if wanted.brief else None)

    async def ask(connection: Connection) -> list[tuple[Any, ...]]:
        asked = parameters(wanted)
        if wanted.worker is not None:
            asked["workers"] = uuids(await _sessions(connection, wanted.worker))
        return await (await connection.execute(question, asked, prepare=False)).fetchall()

    if wanted.ids:
        return await _bounded(connections, ask)
    return await looked(connections, ask)


async def looked(connections: Connections, ask: Ask) -> list[tuple[Any, ...]]:
    """Ask what may have to look at very many jobs: for so long, and with so many of the connections at once.

    The others stay for everybody else. Who does not get his turn hears `SearchesBusy`.
    """
    try:
        async with asyncio.timeout(LOOKING_SECONDS):
            await connections.searches.acquire()
    except TimeoutError:
        raise SearchesBusy(LOOKING_SECONDS) from None
    try:
        return await _bounded(connections, ask)
    finally:
        connections.searches.release()


async def _bounded(connections: Connections, ask: Ask) -> list[tuple[Any, ...]]:
    spent = 0.0

    async def call(connection: Connection, _: bool) -> list[tuple[Any, ...]]:
        # A try that had to wait for its connection is cut short and repeated: all tries together have the time of one.
        # Only where the server itself should have ended it long ago, the network is to blame, and it begins anew.
        nonlocal spent
        left = LOOKING_SECONDS - spent if spent < LOOKING_SECONDS else LOOKING_SECONDS
        began = time.monotonic()
        try:
            async with connection.transaction():
                # A plan that fits every filter fits none: it is planned for what was asked.
                await connection.execute(
                    "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), "
                    f"set_config('statement_timeout', '{max(1.0, left * 1000):.0f}', true)"
                )
                return await ask(connection)
        except psycopg.errors.QueryCanceled as error:
            if "statement timeout" in str(error):
                raise SearchTooWide(LOOKING_SECONDS) from error
            raise
        finally:
            spent += time.monotonic() - began

    return await connections.run(call)


@cache
def composed(order: str, around: str | None) -> LiteralString:
    """The one text of find with its ending, and what stands around it."""
    question = statement(order).format(find=statement("find"))
    return question if around is None else statement(around).format(found=question)


def parameters(wanted: JobFilter) -> dict[str, Any]:
    """The filter in the words of the statements; None where it does not narrow."""
    asked: dict[str, Any] = wanted._asdict()
    states = wanted.meant_states
    asked["states"] = None if states is None else [state.value for state in states]
    asked["correlation_uuid"] = _uuid_or_none(wanted.correlation_id)
    asked["ids"] = uuids(wanted.ids) if wanted.ids else None
    asked["workers"] = None
    asked["longest"] = LISTED
    asked["args"] = json_path(wanted.args) if wanted.args else None
    asked["id_from"] = None if wanted.created_from is None else first_id(wanted.created_from, -TRUSTED)
    asked["id_until"] = None if wanted.created_until is None else first_id(wanted.created_until, TRUSTED)
    return asked


def json_path(wanted: Sequence[ArgumentIs]) -> str:
    """The arguments as one predicate: lax, so that a list stands for its elements."""
    return " && ".join(
        "(" + " || ".join(f"$.{_names(one.path)} == {literal}" for literal in one.literals) + ")"
        for one in wanted
    )


def first_id(moment: datetime, moved: timedelta) -> UUID:
    """The least id that can be made at a moment, or later or earlier by so much."""
    try:
        milliseconds = int((moment + moved).timestamp() * 1000)
    except OverflowError:  # at the ends of the calendar
        return UUID(int=0) if moved < timedelta(0) else LAST
    return UUID(int=max(milliseconds, 0) << 80)


async def _sessions(connection: Connection, worker: str) -> list[UUID]:
    host, _, pid = worker.rpartition(":")
    one_process = bool(host) and pid.isascii() and pid.isdigit() and len(pid) < 10
    asked = {"host": host if one_process else worker, "pid": int(pid) if one_process else None}
    return [row[0] for row in await (await connection.execute(statement("sessions_of"), asked)).fetchall()]


def _names(path: tuple[str, ...]) -> str:
    return ".".join(json.dumps(name) for name in path)


def _uuid_or_none(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None
