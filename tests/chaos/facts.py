"""What the system under test says itself: its tables, read once after the run, and samples taken meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg

from chaos.calendar import TICKS, Fired
from chaos.sums import Sums, read_sums
from chaos.trail import Letter, Told

ROWS = """
SELECT id::text, version, state, attempt, max_attempts, payload ->> 'key', result, session_id::text, gate, unique_key,
       error_class
FROM rota.all_jobs
"""
ATTEMPTS = """
SELECT job_id::text, version, attempt, outcome, error_class, session_id::text,
       extract(epoch FROM started_at)::float8, extract(epoch FROM ended_at)::float8
FROM rota.failed_attempts ORDER BY job_id, version
"""
SESSIONS = """
SELECT id::text, pid, extract(epoch FROM lease_until)::float8, extract(epoch FROM ended_at)::float8 FROM rota.sessions
"""
ENDED = """
SELECT id::text, version, state FROM rota.all_jobs
WHERE state IN ('completed', 'partial', 'dead', 'cancelled') AND payload ? 'key'
"""
"""Ours alone: what a test has put there to be purged goes by its will."""
TWINS = """
SELECT coalesce(tenant, '') || '/' || task || '/' || unique_key, count(*) FROM rota.jobs
WHERE unique_key IS NOT NULL AND (unique_scope = 'finished' OR state <> 'running')
GROUP BY 1 HAVING count(*) > 1
"""
CROWDED = """
SELECT gate, count(*) FROM rota.jobs WHERE state = 'running' AND gate IS NOT NULL GROUP BY 1 HAVING count(*) > 1
"""
LETTERS = "SELECT id::text, review, reprocessed_as::text FROM rota.dead_jobs"
AUDIT = "SELECT job_id::text, action, after, actor FROM rota.audit WHERE job_id IS NOT NULL ORDER BY id"
LOAD = """
SELECT count(*), pg_notification_queue_usage() FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'rota'
"""


class Row(NamedTuple):
    """A job as it is stored now."""

    job: str
    version: int
    state: str
    attempt: int
    max_attempts: int
    key: str
    result: Any
    session: str | None
    gate: str | None = None
    unique_key: str | None = None
    error_class: str | None = None

    @property
    def terminal(self) -> bool:
        return self.state in ("completed", "partial", "dead", "cancelled")


class Tried(NamedTuple):
    """An attempt that did not succeed, as it is stored."""

    job: str
    fence: int
    attempt: int
    outcome: str
    error_class: str
    session: str | None
    start: float | None
    end: float


class Life(NamedTuple):
    """A worker's session as it is stored."""

    session: str
    pid: int
    lease_until: float
    ended: float | None


class Tables(NamedTuple):
    """Everything at rest."""

    rows: list[Row]
    tried: list[Tried]
    lives: list[Life]
    told: list[Told] = []  # noqa: RUF012 - a named tuple's own default, never changed
    letters: list[Letter] = []  # noqa: RUF012
    fired: list[Fired] = []  # noqa: RUF012
    sums: Sums | None = None
    """None: this evidence is about single jobs."""


def read_tables(url: str) -> Tables:
    with psycopg.connect(url, autocommit=True) as connection:
        return Tables(
            [Row(*row) for row in connection.execute(ROWS)],
            [Tried(*row) for row in connection.execute(ATTEMPTS)],
            [Life(*row) for row in connection.execute(SESSIONS)],
            [Told(*row) for row in connection.execute(AUDIT)],
            [Letter(*row) for row in connection.execute(LETTERS)],
            [Fired(*row) for row in connection.execute(TICKS)],
            read_sums(connection),
        )


@dataclass
class Samples:
    """What was seen while the run went on."""

    changed: list[tuple[str, str, str]] = field(default_factory=list)
    """Jobs whose end changed after it was written: id, before, after."""
    twins: list[tuple[str, int]] = field(default_factory=list)
    """Unique keys that two unfinished jobs had at once."""
    crowded: list[tuple[str, int]] = field(default_factory=list)
    """Gates that two running jobs were in at once."""
    connections: int = 0
    notifications: float = 0.0
    memory: int = 0
    taken: int = 0


class Sampler:
    """Looks ten times a second, on a connection that no proxy and no nemesis touches."""

    def __init__(self, url: Callable[[], str], memory: Callable[[], int]) -> None:
        self._url, self._memory = url, memory
        self._samples = Samples()
        self._ends: dict[str, str] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="chaos-sampler")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> Samples:
        self._over.set()
        self._thread.join()
        return self._samples

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                with psycopg.connect(self._url(), autocommit=True, connect_timeout=2) as connection:
                    self._sample(connection)
            except psycopg.OperationalError:
                self._over.wait(0.1)  # the server is down, by plan

    def _sample(self, connection: psycopg.Connection) -> None:
        ends_at = 0.0
        while not self._over.wait(0.1):
            seen = self._samples
            count, usage = connection.execute(LOAD).fetchone() or (0, 0.0)
            seen.twins.extend(connection.execute(TWINS).fetchall())
            seen.crowded.extend(connection.execute(CROWDED).fetchall())
            seen.connections = max(seen.connections, count)
            seen.notifications = max(seen.notifications, usage)
            seen.memory = max(seen.memory, self._memory())
            seen.taken += 1
            if time.monotonic() > ends_at:
                self._compare_ends(connection)
                ends_at = time.monotonic() + 0.5

    def _compare_ends(self, connection: psycopg.Connection) -> None:
        ends = {job: f"{state} v{version}" for job, version, state in connection.execute(ENDED)}
        for job, before in self._ends.items():
            if ends.get(job, "gone") != before:
                self._samples.changed.append((job, before, ends.get(job, "gone")))
        self._ends = ends
