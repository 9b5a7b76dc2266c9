"""The command line as its users meet it: called in this process on a database of the test, or as a real process."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from psycopg import sql

from build import a_job, a_session, claim, failed
from rota._core.failure import ErrorClass
from rota._core.job import Job
from rota._core.task_spec import TaskSpec
from rota.cli.commands import Call
from rota.cli.main import run as run_command
from rota.stores.contract import Store
from rota.stores.postgres import PostgresStore

FOREIGN = ("ROTA_", "DATABASE_URL", "PGHOST", "PGDATABASE", "PGSERVICE", "WORKER_", "KUBERNETES", "NO_COLOR")

APP = """
from rota import Rota, Retry, current_job

app = Rota()


@app.task
def greet(name: str, times: int = 1) -> str:
    return " ".join([f"Hello, {name}!"] * times)


@app.task(queue="feeds", retry=Retry(attempts=1))
async def broken() -> None:
    raise ValueError("no such feed")


@app.task(retry=Retry(attempts=3, base=0.2))
async def shaky() -> int:
    if current_job().attempt < 2:
        raise ConnectionError("once more")
    return current_job().attempt


@app.task
async def endless() -> None:
    import asyncio

    await asyncio.sleep(3600)
"""


class Said(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Iterator[None]:
    """An empty directory, and nothing of the developer's own settings."""
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    monkeypatch.setenv("ROTA_ACTOR", "ann@office")
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.fixture
def rota(capsys, monkeypatch) -> Callable[..., Said]:
    """Call a command in this process, as in a pipe."""

    def call(*arguments: str, stdin: str = "") -> Said:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = run_command(Call(), [str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call


@pytest.fixture
def process() -> Callable[..., Said]:
    """Call a command in a process of its own."""

    def call(*arguments: str, timeout: float = 60, **options: Any) -> Said:
        done = subprocess.run(
            [sys.executable, "-m", "rota.cli", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            **options,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return call


class Jobs:
    """The database of a test, filled and read by short words."""

    def __init__(self, url: str) -> None:
        self.url = url

    def do(self, work: Callable[[Store], Any]) -> Any:
        """Run `work` on the store, on an event loop of its own."""

        async def run() -> Any:
            store = PostgresStore(self.url)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(run())

    def add(self, task: str = "greet", *, times: int = 1, **fields: Any) -> Any:
        jobs = [a_job(task, **fields) for _ in range(times)]
        self.do(lambda store: store.enqueue(jobs))
        return jobs[0].id if times == 1 else [job.id for job in jobs]

    def run(self, task: str = "greet", **fields: Any) -> Job:
        """A job that a living session runs."""

        async def work(store: Store) -> Job:
            job = a_job(task, **fields)
            await store.enqueue([job])
            claimed = await claim(store, await a_session(store, lease=600))
            return next(found for found in claimed if found.id == job.id)

        return self.do(work)

    def dead(self, task: str = "greet", message: str = "no such address", **fields: Any) -> Any:
        job = self.run(task, **fields)
        self.do(lambda store: store.settle([failed(job, ErrorClass.NON_RETRYABLE, message)]))
        return job.id

    def get(self, job_id: Any) -> Job:
        return self.do(lambda store: store.get([job_id]))[0]

    def publish(self, *specs: TaskSpec) -> None:
        self.do(lambda store: store.publish(specs))


@pytest.fixture
def jobs(fresh_database, monkeypatch) -> Jobs:
    """A database that the commands of this test use."""
    monkeypatch.setenv("ROTA_URL", fresh_database)
    return Jobs(fresh_database)


@pytest.fixture
def app(tmp_path):
    """An app in the current directory."""
    path = tmp_path / "jobs.py"
    path.write_text(APP)
    return path


@pytest.fixture
def bare(cluster, administrator) -> Iterator[str]:
    """The address of an empty database without the schema."""
    name = f"bare_{uuid4().hex[:12]}"
    administrator.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield urlsplit(cluster)._replace(path=f"/{name}").geturl()
    administrator.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def embedded(tmp_path) -> Iterator[str]:
    """The address of an embedded server that is not made yet; it is removed with whatever became of it."""
    from rota.stores.postgres.embedded import EmbeddedServer

    yield f"embedded:{tmp_path}/server"
    EmbeddedServer(tmp_path / "server").destroy()
