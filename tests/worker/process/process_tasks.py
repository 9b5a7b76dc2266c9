"""Tasks that run in child processes: well-behaved ones, and such as no worker should have to survive."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from rota import Die, Process, Retry, RetryAfter, Rota, Snooze, current_job
from rota.errors import Cancel

log = logging.getLogger("process_tasks")

app = Rota()


@app.resource
async def greeting() -> AsyncIterator[dict[str, Any]]:
    value = {"word": "hello", "pid": os.getpid()}
    yield value
    farewell = os.environ.get("ROTA_TEST_FAREWELL")
    if farewell:
        Path(farewell).write_text("closed", encoding="ascii")


@app.task(executor="process")
def add(a: int, b: int = 2) -> int:
    return a + b


@app.task(executor="process")
def talk(words: str) -> None:
    current_job().log.info("said %s", words)
    log.warning("logged %s", words)


@app.task(executor="process", retry=Retry(attempts=2, base=0.0))
def book(order: int, ends: str = "well") -> dict[str, int]:
    with current_job().transaction() as connection:
        connection.execute("INSERT INTO booked VALUES (%s, %s)", [order, current_job().attempt])
    if current_job().attempt == 1:
        _ends(ends)
    return {"booked": order}


@app.task(executor="process", retry=Retry(attempts=2, base=0.0))
async def book_later(order: int, ends: str = "well") -> dict[str, int]:
    async with current_job().transaction() as connection:
        await connection.execute("INSERT INTO booked VALUES (%s, %s)", [order, current_job().attempt])
    if current_job().attempt == 1:
        _ends(ends)
    return {"booked": order}


def _ends(how: str) -> None:
    if how == "badly":
        raise ValueError("no")
    if how == "with a crash":
        os._exit(7)


@app.task(executor="process")
async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0.001)
    return a + b


@app.task(executor="process")
def whoami() -> dict[str, Any]:
    job = current_job()
    return {
        "pid": os.getpid(),
        "sid": os.getsid(0),
        "ppid": os.getppid(),
        "attempt": job.attempt,
        "tenant": job.tenant,
        "correlation": job.correlation_id,
        "greeting": greeting()["word"],
        "environment": sorted(os.environ),
        "session_is_own": os.getsid(0) == os.getpid(),
    }


@app.task(executor=Process(env=["SHOP_*"]))
def shop_variable() -> str | None:
    return os.environ.get("SHOP_TOKEN")


@app.task(executor="process")
def rights_of_a_file() -> str:
    with tempfile.TemporaryDirectory() as folder:
        (made := Path(folder, "report.txt")).write_text("42", encoding="utf-8")
        return oct(made.stat().st_mode & 0o777)


@app.task(executor=Process(umask=0o022))
def rights_for_others() -> str:
    return rights_of_a_file.fn()


@app.task(executor="process", retry=Retry(attempts=5, base=0.05, jitter=0.0))
def fail(how: str) -> Any:
    match how:
        case "error":
            raise LookupError("no such row: 7")
        case "unpicklable":
            raise type("Odd", (Exception,), {"lock": lambda self: None})("odd")
        case "mute":
            raise type("Mute", (Exception,), {"__str__": lambda self: 1 / 0})
        case "snooze":
            raise Snooze("1h", "later")
        case "die":
            raise Die("beyond help")
        case "cancel":
            raise Cancel("nobody wants it")
        case "retry_after":
            raise RetryAfter("30m", "busy")
        case "exit":
            sys.exit(3)
        case "result":
            return {1, object()}
        case "large":
            return "x" * 300_000


@app.task(executor="process", retry=Retry(attempts=10, base=0.02, jitter=0.0))
def crash(how: str) -> None:
    log.warning("about to go: %s", how)
    match how:
        case "segfault":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(7)
        case "garbage":
            for line in _lines():
                os.write(line, b"\xff" * 64)
            time.sleep(60)
        case "closed":
            os.closerange(3, 64)


def _lines() -> list[int]:
    """Every socket of this process; one of them is its line to the worker."""
    found = []
    for number in range(3, 64):
        try:
            if str(Path(f"/proc/self/fd/{number}").readlink()).startswith("socket:"):
                found.append(number)
        except OSError:
            continue
    return found


@app.task(executor="process", timeout=0.3, retry=Retry(attempts=1))
def hold(how: str, note: str = "") -> None:
    """Take for ever, in ways that cannot be talked to."""
    match how:
        case "gil":
            if note:
                Path(note).write_text(str(os.getpid()), encoding="ascii")
            # PyDLL keeps the GIL while C sleeps: no other thread of this process runs, no signal handler either.
            ctypes.PyDLL(None).sleep(60)
        case "stubborn":
            while True:
                try:
                    time.sleep(60)
                except BaseException:
                    Path(note).write_text("interrupted", encoding="ascii")
        case "double fork":
            _daemon(note)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
            while True:
                try:
                    time.sleep(60)
                except BaseException:
                    continue
        case "polite":
            try:
                time.sleep(60)
            finally:
                Path(note).write_text("cleaned up", encoding="ascii")


@app.task(executor="process", timeout=0.3, retry=Retry(attempts=1))
async def hold_later(how: str, note: str = "") -> None:
    match how:
        case "blocking":
            time.sleep(60)
        case "stubborn":
            while True:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    continue
        case "polite":
            try:
                await asyncio.sleep(60)
            finally:
                Path(note).write_text("cleaned up", encoding="ascii")


def _daemon(note: str) -> None:
    """Leave parent, group and session behind, as daemons do."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            Path(note).write_text(str(os.getpid()), encoding="ascii")
            time.sleep(600)
        os._exit(0)
    while not Path(note).exists() or not Path(note).read_text(encoding="ascii"):
        time.sleep(0.005)


@app.task(executor="process", timeout=1.0, retry=Retry(attempts=2, base=0.0))
def hold_then_look(note: str) -> bool:
    """The first attempt leaves a daemon behind and never ends; the second says whether that still lives."""
    if current_job().attempt == 1:
        hold("double fork", note)
    try:
        status = Path(f"/proc/{Path(note).read_text(encoding='ascii')}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


@app.task(executor="process")
def nap(seconds: float) -> str:
    time.sleep(seconds)
    return "rested"


@app.task(executor="process")
def leave_a_daemon(note: str) -> None:
    _daemon(note)


@app.task(executor="process")
def leave_a_program(note: str) -> None:
    process = subprocess.Popen(["sleep", "600"])
    Path(note).write_text(str(process.pid), encoding="ascii")


@app.task(executor="process")
def fork_and_return() -> str:
    return "the copy" if os.fork() == 0 else "the original"


@app.task(executor="process")
def until_cancelled(note: str) -> str:
    job = current_job()
    Path(note).write_text(str(os.getpid()), encoding="ascii")
    try:
        while not job.cancel_requested:
            time.sleep(0.005)
    except BaseException:
        job.stop_if_cancelled()
        raise
    return "never"


@app.task(executor="process")
def speak(text: str) -> None:
    log.info("it says %s", text, extra={"colour": "green"})
    try:
        print(1 / 0)
    except ZeroDivisionError:
        log.exception("it also divided")


@app.task(executor="process")
def chatter(length: int) -> None:
    """Say more than anybody wants to hear."""
    log.info("it goes on and on", extra={"body": "x" * length})
    raise Cancel("nobody reads this" + "x" * length)


@app.task(executor="process")
async def follow_up(a: int) -> str:
    handle = await add.enqueue(a)
    return str(handle.id)


@app.task(executor="process")
def follow_up_sync(a: int) -> str:
    return str(add.enqueue_sync(a).id)


@app.task(executor="process")
def follow_up_within(url: str, commit: bool) -> str:
    import psycopg

    with psycopg.connect(url) as connection:
        handle = add.using(tx=connection).enqueue_sync(5)
        if not commit:
            connection.rollback()
    return str(handle.id)


@app.task(executor=Process(memory="256MB"), retry=Retry(attempts=1))
def hog(megabytes: int) -> int:
    return len(bytearray(megabytes * 1024 * 1024))


@app.task(executor=Process(cpu=1, files=128), retry=Retry(attempts=1))
def spin() -> None:
    while True:
        pass


@app.task(executor=Process(files=128), retry=Retry(attempts=1))
def open_many() -> int:
    files = [open("/dev/null") for _ in range(1000)]  # noqa: SIM115, PTH123
    return len(files)


@app.task(executor=Process(jobs=2))
def worn_out() -> int:
    return os.getpid()


@app.task
async def innocent(number: int) -> int:
    await asyncio.sleep(0.01)
    return number


@app.task
async def whereabouts() -> tuple[int, str | None]:
    return os.getpid(), os.environ.get("SHOP_TOKEN")


@app.task(retry=Retry(attempts=5, base=0.05, jitter=0.0))
async def poison() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
