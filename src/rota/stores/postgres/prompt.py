"""A connection that sends our statements with little ceremony, and gives them up promptly."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.rows import TupleRow
from psycopg.waiting import wait_async

from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from psycopg.abc import PQGen
    from psycopg.abc import Transformer as Reader
    from psycopg.pq.abc import PGresult

T = TypeVar("T")

LET_GO_SECONDS = 0.5
"""How long a statement that is given up may take to be cancelled by the server."""


class Form(NamedTuple):
    """A statement as the wire wants it: values by number."""

    name: bytes
    text: bytes
    values: tuple[str, ...]
    """Which named value is $1, $2 and so on."""


@cache
def form(verb: str) -> Form:
    """`sql/verb.sql` with numbers for its names."""
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${numbers.setdefault(found[1], len(numbers) + 1)}"

    text = re.sub(r"%\((\w+)\)s", number, statement(verb)).replace("%%", "%")
    return Form(f"rota_{verb}".encode(), text.encode(), tuple(numbers))


class PromptConnection(psycopg.AsyncConnection[TupleRow]):
    """A connection for our own statements.

    They are given up promptly when their caller waits no longer: psycopg itself
    then waits up to ten seconds for the server to confirm. One that has gone
    silent never does, and by then a heartbeat's lease is past.
    """

    keeps_statements = False
    """Whether it is the server itself that answers, so that statements may stay prepared there. psycopg prepares
    none by itself: after a ROLLBACK it would throw away all, ours included."""
    heard = 0.0
    """When it last answered a whole call, on this process's own clock."""
    _rota_encoding: str | None = None
    _rota_prepared: set[bytes]
    _rota_reader: Reader

    async def ask(self, verb: str, values: Mapping[str, Any]) -> list[TupleRow]:
        """Run `sql/verb.sql` and answer its rows.

        The same as `execute()` and `fetchall()`, in half the time of this process:
        a cursor looks at each value anew to find out how it is sent, and ours are
        always texts, numbers, ids and times.
        """
        if self._rota_encoding is None:
            self._rota_encoding = self.info.encoding
            self._rota_prepared = set()
            self._rota_reader = Transformer(self)
        known = form(verb)
        encoding = self._rota_encoding
        results = await self.wait(
            self._sending(known, [_sent(values[name], encoding) for name in known.values])
        )
        result = self._good(results[-1])
        self._rota_reader.set_pgresult(result)
        return self._rota_reader.load_rows(0, result.ntuples, tuple)

    def _sending(self, known: Form, values: Sequence[bytes | None]) -> PQGen[list[PGresult]]:
        if not self.keeps_statements:  # a pooler: the next statement may meet another server process
            self.pgconn.send_query_params(known.text, values, result_format=Format.BINARY)
            results: list[PGresult] = yield from execute(self.pgconn)
            return results
        if known.name not in self._rota_prepared:
            self.pgconn.send_prepare(known.name, known.text)
            self._good((yield from execute(self.pgconn))[-1])
            self._rota_prepared.add(known.name)
        self.pgconn.send_query_prepared(known.name, values, result_format=Format.BINARY)
        results = yield from execute(self.pgconn)
        return results

    def _good(self, result: PGresult) -> PGresult:
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return result
        raise error_from_result(result, encoding=self._rota_encoding or "utf-8")

    async def wait(self, gen: PQGen[T], interval: float = 0.1, *given: Any, **options: Any) -> T:
        try:
            return await wait_async(gen, self.pgconn.socket, interval, *given, **options)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._let_go(gen)
            raise

    async def _let_go(self, gen: PQGen[T]) -> None:
        """Have the running statement cancelled; hang up on a server that does not say so at once."""
        try:
            async with asyncio.timeout(LET_GO_SECONDS):
                await self.cancel_safe(timeout=LET_GO_SECONDS)
                await wait_async(gen, self.pgconn.socket, interval=0.1)
        except psycopg.errors.QueryCanceled:
            pass
        except (psycopg.Error, OSError, TimeoutError):
            self.pgconn.finish()


def _sent(value: Any, encoding: str) -> bytes | None:
    """A value as text; the server knows its type from where it stands."""
    if value is None:
        return None
    if type(value) is str:
        text = value.encode(encoding)
        if b"\0" in text:
            raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
        return text
    if type(value) is int or type(value) is float or isinstance(value, UUID):
        return str(value).encode()
    if type(value) is bool:
        return b"t" if value else b"f"
    if isinstance(value, datetime):
        return value.isoformat().encode()
    raise TypeError(f"a value of a statement is a {type(value).__name__}: {value!r}. Make it a text first.")
