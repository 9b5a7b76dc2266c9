"""`rota.worker.run(app)` as a process: signals and exit codes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, logging, sys, threading
from rota import Rota, worker
from rota.config import Settings
from rota.stores.memory import MemoryStore

logging.basicConfig(level="INFO", stream=sys.stdout, format="%(message)s")
app = Rota(store=MemoryStore(), settings=Settings.load(url="memory://", grace={grace}))

@app.task
async def work() -> None:
    print("begun", flush=True)
    try:
        await asyncio.sleep({seconds})
        print("ended", flush=True)
    except asyncio.CancelledError:
        print("interrupted", flush=True)
        {instead}

asyncio.run(work.enqueue())
code = worker.run(app, lanes={{"general": 5}})
job = asyncio.run(app.store.find(__import__("rota.stores.contract").stores.contract.JobFilter()))[0]
print("job is", job.state.value, "after", job.attempt, "attempts", flush=True)
print("threads:", sorted(t.name for t in threading.enumerate() if t.name.startswith("rota")), flush=True)
sys.exit(code)
"""


class Program:
    """A worker in a process of its own."""

    def __init__(self, path: Path, *, seconds: float, grace: float, instead: str = "raise") -> None:
        path.write_text(PROGRAM.format(seconds=seconds, grace=grace, instead=instead))
        self.process = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True)
        self.said: list[str] = []

    def until(self, word: str) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.said.append(line.strip())
            if word in line:
                return
        raise AssertionError(f"it ended without saying {word!r}: {self.said}")

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> int:
        assert self.process.stdout
        self.said += [line.strip() for line in self.process.stdout]
        return self.process.wait(timeout=20)


@pytest.fixture
def program(tmp_path):
    made: list[Program] = []

    def start(**options) -> Program:
        made.append(Program(tmp_path / "program.py", **options))
        return made[-1]

    yield start
    for program in made:
        program.process.kill()
        program.process.wait()
        program.process.stdout.close()


@pytest.mark.req("L26")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_running_jobs_finish(program, number):
    worker = program(seconds=0.3, grace=10)
    worker.until("begun")
    worker.signal(number)

    assert worker.end() == 0
    assert "ended" in worker.said
    assert "stopped; every job that was begun has ended." in worker.said
    assert "job is completed after 1 attempts" in worker.said
    assert "threads: []" in worker.said


def test_a_worker_says_in_one_line_what_it_is(program):
    worker = program(seconds=0, grace=1)
    worker.until("ended")
    worker.signal(signal.SIGTERM)
    worker.end()

    assert (
        "worker started: lanes general=5 (every queue); 5 slots in all; 1 tasks; store memory." in worker.said
    )


def test_at_the_end_of_the_grace_jobs_are_handed_back_and_the_exit_code_says_so(program):
    worker = program(seconds=60, grace=0.2)
    worker.until("begun")
    worker.signal(signal.SIGTERM)

    assert worker.end() == 1
    assert "interrupted" in worker.said
    assert "job is pending after 0 attempts" in worker.said


def test_the_second_signal_hands_back_at_once(program):
    worker = program(seconds=60, grace=60)
    worker.until("begun")
    worker.signal(signal.SIGTERM)
    time.sleep(0.2)
    began = time.monotonic()
    worker.signal(signal.SIGTERM)

    assert worker.end() == 1
    assert time.monotonic() - began < 5
    assert "job is pending after 0 attempts" in worker.said


def test_a_handler_that_ignores_its_cancellation_cannot_keep_the_process_alive(program):
    worker = program(
        seconds=60, grace=0.1, instead="[await deaf() for deaf in [lambda: asyncio.sleep(60)] * 99]"
    )
    worker.until("begun")
    began = time.monotonic()
    worker.signal(signal.SIGTERM)

    assert worker.end() == 1
    assert time.monotonic() - began < 10
    assert "job is pending after 0 attempts" in worker.said
