"""A stage for supervisors: the real command on a real database, its children, and what can be done to them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import psycopg

from build import a_job
from rota.app import Rota
from rota.handle import Handle
from rota.stores.contract import Job

JOBS = """
import asyncio, ctypes, os, subprocess, threading, time
from rota import Retry, Rota, current_job

app = Rota()
kept = []
libc = ctypes.PyDLL(None)  # calls through it hold the interpreter


def hold(seconds):
    # Hold the interpreter; without an end where it is a minute or more (and no signal can interrupt it then).
    if seconds < 60:
        libc.usleep(int(seconds * 1_000_000))
    else:
        libc.read(os.pipe()[0], ctypes.create_string_buffer(1), 1)


def mark(word):
    with open("marks", "a") as file:
        file.write(f"{word} {os.getpid()}\\n")


@app.task
async def quick(n: int = 0) -> int:
    return os.getpid()


@app.task
async def sleepy(seconds: float) -> int:
    mark("sleepy")
    await asyncio.sleep(seconds)
    return os.getpid()


@app.task
def plain(seconds: float) -> int:
    mark("plain")
    time.sleep(seconds)
    return os.getpid()


@app.task(retry=Retry(attempts=1))
async def block_loop(seconds: float, pause: float = 0.0) -> str:
    mark("block_loop")
    if pause:
        await asyncio.sleep(pause)
    time.sleep(seconds)
    return "done"


@app.task(retry=Retry(attempts=1))
async def hold_gil(seconds: float, pause: float = 0.0) -> str:
    mark("hold_gil")
    if pause:
        await asyncio.sleep(pause)
    hold(seconds)
    return "done"


@app.task(retry=Retry(attempts=1))
def hold_gil_in_thread(seconds: float) -> str:
    mark("hold_gil_in_thread")
    hold(seconds)
    return "done"


@app.task(retry=Retry(attempts=1, lost=False))
async def start_program() -> None:
    with open("program", "w") as file:
        file.write(f"{subprocess.Popen(['sleep', '600']).pid}\\n")
    await asyncio.sleep(60)


@app.task
async def grow(megabytes: int) -> int:
    kept.append(bytearray(os.urandom(1024) * 1024 * megabytes))
    return os.getpid()


@app.task(retry=Retry(attempts=1, lost=False))
async def once() -> None:
    mark("once")
    await asyncio.sleep(60)


@app.task(retry=Retry(attempts=9, base=0.05))
async def poison() -> None:
    mark("poison")
    os.kill(os.getpid(), 9)


@app.task
async def crash_once(number: int) -> None:
    mark("crash_once")
    if not os.path.exists("crashed"):
        open("crashed", "w").close()
        os.kill(os.getpid(), number)
"""

QUICK = {
    "ROTA_LEASE": "15", "ROTA_BEAT": "0.5", "ROTA_POLL": "0.1", "ROTA_IDLE_POLL": "0.3", "ROTA_GRACE": "10",
    "ROTA_STOP_GRACE": "0.5", "ROTA_STALL": "0.5",
}  # fmt: skip

LOGS: list[Supervised] = []
"""The workers of the test that runs now; what they said explains why something did not happen."""


def eventually(truth: Callable[[], Any], within: float = 15.0) -> Any:
    """What `truth` answers once it is true."""
    end = time.monotonic() + within
    while not (found := truth()):
        assert time.monotonic() < end, f"it did not happen within {within:g} s:\n" + "\n---\n".join(
            worker.said for worker in LOGS
        )
        time.sleep(0.02)
    return found


class Supervised:
    """`rota worker` as a process, with its children."""

    def __init__(self, directory: Path, url: str, *arguments: str, **settings: Any) -> None:
        self.directory = directory
        self.log = directory / f"log-{time.monotonic_ns()}"
        LOGS.append(self)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
        environment |= QUICK | {"ROTA_URL": url}
        environment |= {
            name if name.isupper() else f"ROTA_{name.upper()}": str(value) for name, value in settings.items()
        }
        # A process inherits what is ignored: under `nohup make test` it would never hear SIGHUP.
        ours = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        try:
            with self.log.open("w") as said:
                self.popen = subprocess.Popen(
                    [sys.executable, "-m", "rota.cli", "worker", "jobs.py", *arguments],
                    cwd=directory, env=environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                )  # fmt: skip
        finally:
            signal.signal(signal.SIGHUP, ours)
        self.known: set[int] = set()

    @property
    def said(self) -> str:
        return self.log.read_text()

    def children(self) -> list[int]:
        """The living children, oldest first."""
        try:
            found = psutil.Process(self.popen.pid).children()
        except psutil.NoSuchProcess:
            return []
        pids = [child.pid for child in found if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
        self.known |= set(pids)
        return pids

    def working(self, number: int = 1) -> list[int]:
        """The children, once so many have ever begun to work."""
        eventually(lambda: self.said.count("worker started") >= number or self._over(), 30)
        return self.children()

    def port(self) -> int:
        """Its health port."""
        return int(eventually(lambda: re.search(r"http://127\.0\.0\.1:(\d+)/readyz", self.said))[1])

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def end(self, within: float = 20.0) -> int:
        return self.popen.wait(within)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.end()

    def close(self) -> None:
        """Leave nothing behind, whatever the test did."""
        self.children()
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        for pid in self.known:
            try:
                if "--child" in psutil.Process(pid).cmdline():
                    os.kill(pid, signal.SIGKILL)
            except (psutil.Error, ProcessLookupError):
                pass

    def _over(self) -> bool:
        assert self.popen.poll() is None, self.said
        return False


class Stage:
    """A database, the app in a directory, and any number of supervised workers."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory, self.url = directory, url
        (directory / "jobs.py").write_text(JOBS)
        self.app = Rota(url)
        self.connection = psycopg.connect(
            url, autocommit=True, prepare_threshold=None
        )  # a pooler may stand before
        self._started: list[Supervised] = []

    def work(self, *arguments: str, **settings: Any) -> Supervised:
        worker = Supervised(self.directory, self.url, *arguments, **settings)
        self._started.append(worker)
        return worker

    def enqueue(self, task: str, payload: Mapping[str, Any] | None = None, **fields: Any) -> Handle[Any]:
        """A job of the app in the directory, which this process does not import."""
        [handle] = self.enqueue_many(task, payload, times=1, **fields)
        return handle

    def enqueue_many(
        self, task: str, payload: Mapping[str, Any] | None = None, *, times: int, **fields: Any
    ) -> list[Handle[Any]]:
        jobs = [a_job(task, payload=dict(payload or {}), **fields) for _ in range(times)]
        self.do(lambda store: store.enqueue(jobs))
        return [self.app.job(job.id) for job in jobs]

    def do(self, work: Callable[[Any], Any]) -> Any:
        """Run `work` on the store, on an event loop of its own."""

        async def run() -> Any:
            try:
                return await work(self.app.store)
            finally:
                await self.app.store.close()

        return asyncio.run(run())

    def job(self, handle: Handle[Any]) -> Job:
        return self.do(lambda store: store.get([handle.id]))[0]

    def rows(self, query: str) -> list[Any]:
        return self.connection.execute(query).fetchall()

    def ended(self, handle: Handle[Any], within: float = 15.0) -> Job:
        eventually(
            lambda: self.connection.execute(
                "SELECT 1 FROM rota.all_jobs WHERE id = %s AND state IN ('completed', 'dead', 'cancelled')",
                [handle.id],
            ).fetchone(),
            within,
        )
        return self.job(handle)

    def marks(self, word: str) -> list[int]:
        """The processes in which a task has begun, one for each beginning."""
        path = self.directory / "marks"
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.split()[1]) for line in lines if line.split()[0] == word]

    def begun(self, word: str, times: int = 1) -> int:
        """The process of the last beginning, once there were so many."""
        eventually(lambda: len(self.marks(word)) >= times)
        return self.marks(word)[-1]

    def close(self) -> None:
        for worker in self._started:
            worker.close()
        LOGS.clear()
        self.connection.close()


def ask(port: int, path: str) -> tuple[int, str]:
    """What the health port answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode().strip()
