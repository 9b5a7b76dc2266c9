"""G8: a job that kills its process each time, among a thousand that do no harm."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from build import a_job
from chaos.fleet import environment
from rota._core.job import NewJob, State
from rota.stores.postgres import PostgresStore

INNOCENT = 1000
SLOTS = 20

APP = """
import asyncio, ctypes, os, signal

from rota import Retry, Rota

app = Rota()


@app.task
async def innocent(number: int) -> int:
    await asyncio.sleep(0.01)
    return number


@app.task(retry=Retry(base=0.05))
async def poison() -> None:
    await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(retry=Retry(base=0.05))
def poison_in_thread() -> None:
    ctypes.string_at(0)
"""


class Run:
    """`rota worker` with its supervisor, on a database of its own."""

    def __init__(self, home: Path, url: str) -> None:
        (home / "jobs.py").write_text(APP)
        self.home, self.url = home, url
        self._log = home / "worker.log"
        quick = {"ROTA_BEAT": "1", "ROTA_POLL": "0.2", "ROTA_IDLE_POLL": "0.5", "ROTA_URL": url}
        with self._log.open("wb") as log:
            self._worker = subprocess.Popen(
                [sys.executable, "-m", "rota.cli", "worker", "jobs.py", "-c", str(SLOTS)],
                cwd=home,
                env=environment(**quick),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def drained(self, within: float) -> None:
        end = time.monotonic() + within
        with psycopg.connect(self.url, autocommit=True) as connection:
            while connection.execute("SELECT count(*) FROM rota.jobs").fetchone() != (0,):
                assert time.monotonic() < end, f"not done within {within:g} s:\n{self.said[-4000:]}"
                assert self._worker.poll() is None, self.said[-4000:]
                time.sleep(0.1)

    @property
    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> int:
        self._worker.send_signal(signal.SIGTERM)
        return self._worker.wait(30)

    def close(self) -> None:
        if self._worker.poll() is None:
            self._worker.kill()
            self._worker.wait()


def enqueue(url: str, jobs: list[NewJob]) -> None:
    async def store() -> None:
        opened = PostgresStore(url)
        await opened.enqueue(jobs)
        await opened.close()

    asyncio.run(store())


@pytest.fixture
def run(fresh_database: str, tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path, fresh_database)
    yield run
    run.close()


@pytest.mark.chaos
@pytest.mark.scenario(7)
@pytest.mark.parametrize(("task", "cause"), [("poison", "SIGKILL"), ("poison_in_thread", "SIGSEGV")])
def test_a_poison_job_kills_one_worker_and_then_only_itself(run: Run, fresh_database, task, cause):
    jobs = [a_job("innocent", {"number": number}, max_attempts=2) for number in range(INNOCENT)]
    guilty = a_job(task)
    jobs.insert(INNOCENT // 3, guilty)
    enqueue(fresh_database, jobs)
    run.drained(90)

    with psycopg.connect(fresh_database) as connection:
        ends = connection.execute(
            "SELECT state, attempt, count(*) FROM rota.all_jobs WHERE task = 'innocent' GROUP BY 1, 2"
        ).fetchall()
        dead = connection.execute(
            "SELECT state, error_class, losses, attempt FROM rota.all_jobs WHERE id = %s", [guilty.id]
        ).fetchone()
        reports = connection.execute(
            "SELECT error_type, stack FROM rota.failed_attempts WHERE job_id = %s ORDER BY version",
            [guilty.id],
        ).fetchall()
    assert ends == [(State.COMPLETED, 1, INNOCENT)], "an innocent job lost an attempt"
    assert dead == (State.DEAD, "crash", 3, 2)
    assert [kind for kind, _ in reports] == [cause] * 3
    assert all("memory: " in stack for _, stack in reports)
    assert run.said.count("worker started") == 2, "one worker process died, and was replaced"
    assert run.stop() == 0
