"""What the server itself can do: rows, commits and notices by plain SQL, for `rota bench` to compare with."""

from __future__ import annotations

import time
from types import TracebackType
from typing import NamedTuple, Self

import psycopg

from rota.stores.postgres.faults import explained
from rota.stores.postgres.sqlfiles import statement

PAYLOAD = '{"n": 1}'
CHUNK = 5_000
BATCH = 100
CHANNEL = "rota_bench"


class Pace(NamedTuple):
    """So many in so many seconds."""

    number: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.number / self.seconds if self.seconds else 0.0


class Probe:
    """A connection to a database of its own, with a table to measure on. Blocks; each measure ends by itself."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
            self._connection.execute(statement("bench_table"))
        except (psycopg.Error, OSError) as error:
            raise explained(error, url) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def server(self) -> str:
        """The server's version, as it tells it."""
        return str(self._connection.info.parameter_status("server_version")).partition(" ")[0]

    def insert(self, seconds: float) -> Pace:
        """One row a commit, one after the other."""
        verb, rows = statement("bench_insert"), 0
        began = time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds or not rows:
            self._connection.execute(verb, {"payload": PAYLOAD})
            rows += 1
        return Pace(rows, passed)

    def copy(self, seconds: float) -> Pace:
        """Rows by COPY, thousands a commit."""
        rows, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds or not rows:
            with self._connection.cursor() as cursor, cursor.copy(statement("bench_copy")) as copy:
                for _ in range(CHUNK):
                    copy.write_row((PAYLOAD,))
            rows += CHUNK
        return Pace(rows, passed)

    def take(self, seconds: float) -> Pace:
        """Rows taken off, a hundred a commit, until none is left."""
        verb, rows, after = statement("bench_take"), 0, 0
        began = time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds or not rows:
            taken = self._connection.execute(verb, {"after": after, "limit": BATCH}).fetchall()
            if not taken:
                break
            rows, after = rows + len(taken), max(row[0] for row in taken)
        return Pace(rows, passed)

    def notify(self, times: int) -> list[float]:
        """Seconds from a row with a notice to its arrival at another connection, committed, for each of so many."""
        took = []
        with psycopg.connect(self.url, autocommit=True) as listener:
            listener.execute(f"LISTEN {CHANNEL}")
            for _ in range(times):
                began = time.perf_counter()
                with self._connection.transaction():
                    self._connection.execute(statement("bench_insert"), {"payload": PAYLOAD})
                    self._connection.execute(f"NOTIFY {CHANNEL}")
                if any(True for _ in listener.notifies(timeout=5.0, stop_after=1)):
                    took.append(time.perf_counter() - began)
        return took
