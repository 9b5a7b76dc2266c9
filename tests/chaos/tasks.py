"""The app that chaos runs: small tasks that do nothing but write down that they ran. Settings come from ROTA_*."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import psycopg

from chaos.effects import Effects
from rota import Process, Retry, Rota, current_job

app = Rota()
effects = Effects(Path(os.environ["CHAOS_EFFECTS"]))

# Attempts enough that no job dies of bad luck: a death in a chaos run is always a finding.
OFTEN = Retry(attempts=200, base=0.05, cap=1.0, max_losses=200)


class Planned(Exception):
    """A failure that belongs to the plan."""


def _answer(key: str) -> dict[str, str | int]:
    job = current_job()
    return {"key": key, "fence": job.fence, "pid": os.getpid()}


@app.task(retry=OFTEN)
async def work(key: str, ms: int, pad: str = "") -> dict[str, str | int]:
    """The usual job: waits on the event loop."""
    with effects.recorded(key):
        await asyncio.sleep(ms / 1000)
    return _answer(key)


@app.task(retry=OFTEN)
def threaded(key: str, ms: int) -> dict[str, str | int]:
    """Waits in a thread, where nothing can stop it."""
    with effects.recorded(key):
        threading.Event().wait(ms / 1000)  # not time.sleep: the library that makes clocks wrong breaks that
    return _answer(key)


@app.task(retry=OFTEN)
async def blocking(key: str, ms: int) -> dict[str, str | int]:
    """Waits without letting anybody else on its loop have a turn."""
    with effects.recorded(key):
        time.sleep(ms / 1000)
    return _answer(key)


@app.task(retry=OFTEN)
async def flaky(key: str, ms: int) -> dict[str, str | int]:
    """Fails at first."""
    with effects.recorded(key):
        await asyncio.sleep(ms / 1000)
        if current_job().attempt == 1:
            raise Planned("the first attempt fails by plan")
    return _answer(key)


@app.task(retry=OFTEN, serial="group")
async def in_line(key: str, ms: int, group: str) -> dict[str, str | int]:
    """One at a time within its group, which each tenant has for itself."""
    with effects.recorded(key, f"{current_job().tenant or ''}/{group}"):
        await asyncio.sleep(ms / 1000)
    return _answer(key)


if os.environ.get("CHAOS_AGE", "new") == "new":
    # What a newer version of the code has, and an older one has not.
    @app.task(retry=OFTEN)
    async def newcomer(key: str, ms: int) -> dict[str, str | int]:
        """A task that workers of the former version do not know."""
        with effects.recorded(key):
            await asyncio.sleep(ms / 1000)
        return _answer(key)


@app.task(retry=OFTEN)
def reads_order(key: str) -> dict[str, str | int]:
    """Fails where the business row that it was enqueued with is not there."""
    with effects.recorded(key), psycopg.connect(os.environ["ROTA_URL"]) as connection:
        if connection.execute("SELECT FROM orders WHERE key = %s", [key]).fetchone() is None:
            raise LookupError(f"the job for {key} came before its order")
    return _answer(key)


BOOKED = "INSERT INTO bookings VALUES (%s, %s)"
"""No key forbids a second row: only the transaction does."""


@app.task(retry=OFTEN)
async def books(key: str, ms: int) -> dict[str, str | int]:
    """Writes a row of the business together with its own end."""
    with effects.recorded(key):
        async with current_job().transaction() as connection:
            await connection.execute(BOOKED, [key, current_job().fence])
        await asyncio.sleep(ms / 1000)
    return _answer(key)


@app.task(retry=OFTEN)
def books_plainly(key: str, ms: int) -> dict[str, str | int]:
    """The same in a thread."""
    with effects.recorded(key):
        with current_job().transaction() as connection:
            connection.execute(BOOKED, [key, current_job().fence])
        threading.Event().wait(ms / 1000)
    return _answer(key)


@app.task(retry=OFTEN, executor=Process(env=["CHAOS_*"]))
def books_apart(key: str, ms: int) -> dict[str, str | int]:
    """The same in a child process."""
    with effects.recorded(key):
        with current_job().transaction() as connection:
            connection.execute(BOOKED, [key, current_job().fence])
        threading.Event().wait(ms / 1000)
    return _answer(key)
