"""Nothing that a job starts outlives its worker, however the worker ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from process_stage import alive, gone

from rota.worker.executors.process import family
from rota.worker.executors.process.wire import Frames, Garbled, frame, from_job, to_job

pytestmark = pytest.mark.slow  # real processes, each with a start of its own

WORKER = """
import asyncio, sys
sys.path[:0] = {paths!r}
import process_tasks as tasks
from rota.config import Settings
from rota.stores.memory import MemoryStore
from rota.worker import Worker

tasks.app._store, tasks.app._settings = MemoryStore(), Settings.load(url="memory://")


async def main():
    {jobs}
    await Worker(tasks.app, lanes={{"general": 2}}).run()


asyncio.run(main())
"""


@pytest.fixture
def sleepers():
    """Starts processes that carry a mark, and ends them."""
    started: list[subprocess.Popen[bytes]] = []

    def start(mark: str | None) -> int:
        marked = {} if mark is None else {family.MARK: mark}
        started.append(subprocess.Popen(["sleep", "600"], env=marked | {"PATH": os.environ["PATH"]}))
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()


def when_killed(jobs: dict[Path, str]) -> list[int]:
    """Let a worker run jobs, each of which notes a process; kill it when all have. The processes."""
    here = Path(__file__).parent
    lines = "; ".join(f"await {job}" for job in jobs.values())
    told = WORKER.format(paths=[str(here), str(here.parent)], jobs=lines)
    worker = subprocess.Popen([sys.executable, "-c", told])
    end = time.monotonic() + 30
    while not all(note.exists() and note.read_text() for note in jobs) and time.monotonic() < end:
        time.sleep(0.02)
    worker.kill()
    worker.wait()
    return [int(note.read_text()) for note in jobs]


def test_when_a_worker_is_killed_its_children_die_and_the_next_worker_sweeps_the_rest(tmp_path: Path):
    note, daemon = tmp_path / "note", tmp_path / "daemon"
    child, escaped = when_killed(
        {
            note: f"tasks.until_cancelled.enqueue({str(note)!r})",
            daemon: f"tasks.hold.using(timeout=600).enqueue('double fork', {str(daemon)!r})",
        }
    )

    assert gone(child, 1.0), "it dies with its worker, whatever it does"
    family.sweep_orphans()
    assert gone(escaped, 1.0), "even what left group, session and parent behind is found"


def test_a_child_that_holds_the_interpreter_and_can_hear_nothing_dies_with_its_worker(tmp_path: Path):
    note = tmp_path / "note"
    [child] = when_killed({note: f"tasks.hold.using(timeout=600).enqueue('gil', {str(note)!r})"})

    assert gone(child, 1.0)


def test_only_what_belongs_to_dead_workers_is_swept(sleepers):
    mark = family.worker_mark()
    namespace, pid, began, _ = mark.split(":")
    mine, nobodys = sleepers(f"{mark}1"), sleepers(None)
    reused = sleepers(f"{namespace}:{pid}:{int(began) - 1}:1")
    dead = sleepers(f"{namespace}:4194303:77:1")
    in_a_container = sleepers(f"1{namespace}:4194303:77:1")
    family.sweep_orphans()

    assert [alive(pid) for pid in (mine, nobodys, in_a_container)] == [True, True, True]
    assert gone(reused, 1.0)
    assert gone(dead, 1.0)


def test_a_dead_worker_s_family_can_be_swept_by_its_pid(sleepers):
    namespace = family.worker_mark().split(":")[0]
    first, second = sleepers(f"{namespace}:4194302:5:1"), sleepers(f"{namespace}:4194302:5:2")
    other = sleepers(f"{namespace}:4194301:5:1")

    assert family.sweep(4194302) == 2
    assert gone(first, 1.0)
    assert gone(second, 1.0)
    assert alive(other)


def test_frames_are_read_however_they_are_cut():
    sent = frame({"is": "end", "number": 7}, b'{"a": 1}') + frame({"is": "log"})
    frames = Frames(body_limit=100)
    came = [found for byte in sent for found in frames.feed(bytes([byte]))]

    assert came == [({"is": "end", "number": 7}, b'{"a": 1}'), ({"is": "log"}, b"")]


@pytest.mark.parametrize(
    "sent", [frame({"is": "end"}, b"x" * 101), b"\xff" * 16, b"\0\0\0\x02\0\0\0\0[]", b"\0\0\0\x02\0\0\0\0{x"]
)
def test_what_is_no_frame_or_too_large_is_refused(sent):
    with pytest.raises(Garbled):
        list(Frames(body_limit=100).feed(sent))


def test_a_job_crosses_the_line_unchanged():
    from datetime import UTC, datetime

    from build import a_stored_job, new_id

    job = a_stored_job(
        payload_json='{"word": "Grüße"}', tags=("a", "b"), tenant="acme", parent_id=new_id(), timeout=1.5,
        deadline=datetime(2030, 1, 1, 12, 0, 0, 7, tzinfo=UTC), losses=2, error_class="crash",
    )  # fmt: skip

    [(header, _)] = Frames(body_limit=0).feed(frame({"job": from_job(job)}))
    assert to_job(header["job"]) == job
