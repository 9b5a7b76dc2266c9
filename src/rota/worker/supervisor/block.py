"""The block: a small piece of memory that one child and its supervisor share. No message is sent for a job.

    header   when the loop ticked, the heart looked, a beat was answered; counters; the session
    ring     the jobs that began last; while `on loop` has a time, the newest of them keeps the event loop since then
    table    jobs that began and wait, or run in threads, with their deadlines
    lines    the last lines of the log

Each field has one writer. Times are of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

RING = 1024
TABLE = 16_384
LINES = 8_192

TIME = struct.Struct("=d")
COUNT = struct.Struct("=Q")
SMALL = struct.Struct("=I")
ID = struct.Struct("=16s")
BEGINNING = struct.Struct("=16siHxxd")  # job id, version, task, seconds that it may run
ENTRY = struct.Struct("=16siHHdd")  # job id, version, task, stop, began, due
HEADER = struct.Struct("=dddddQQQIIIxxxx16s16s")

TICKED, LOOKED, BEATEN, KEPT, ON_LOOP, BEGUN, RSS, WRITTEN, ZOMBIES, TABLED, PHASE, SESSION, KEPT_FOR = (
    0, 8, 16, 24, 32, 40, 48, 56, 64, 68, 72, 80, 96,
)  # fmt: skip
RING_AT = 128
TABLE_AT = RING_AT + RING * BEGINNING.size
LINES_AT = TABLE_AT + TABLE * ENTRY.size
SIZE = LINES_AT + LINES
NOBODY = bytes(16)


class Phase(IntEnum):
    """How far a child's life is."""

    STARTING = 0  # imports the app
    OPENING = 1  # reaches for the store
    WORKING = 2
    ENDING = 3  # the loops are stopped; resources are closed


class Entry(NamedTuple):
    """A job that has begun."""

    job_id: UUID
    version: int
    task: int
    """Its place in the list of tasks that the child gave."""
    stop: int
    """Why it was told to stop; 0 when it was not."""
    began: float
    due: float
    """When it must end; infinite without a timeout. Once it was told to stop: when it is waited for no longer."""


class Sight(NamedTuple):
    """The header, at one look."""

    ticked: float
    looked: float
    beaten: float
    """When the last beat that the child itself got an answer to was sent."""
    kept: float
    """The same of the supervisor's beats."""
    begun: int
    rss: int
    zombies: int
    tabled: int
    on_loop: float
    """Since when the job that began last keeps the event loop; 0 when none does."""
    phase: Phase
    session: UUID | None
    kept_for: UUID | None


class Block:
    """One side's view of the shared memory behind a file descriptor."""

    def __init__(self, fd: int) -> None:
        self.memory = mmap.mmap(fd, SIZE)

    def close(self) -> None:
        self.memory.close()

    # What the supervisor reads and writes

    def look(self) -> Sight:
        """The header. Cheap: done several times a second for every child."""
        (
            ticked, looked, beaten, kept, on_loop, begun, rss, _, zombies, tabled, phase, session, kept_for,
        ) = HEADER.unpack_from(self.memory, 0)  # fmt: skip
        return Sight(
            ticked, looked, beaten, kept, begun, rss, zombies, min(tabled, TABLE), on_loop, Phase(phase),
            _uuid(session), _uuid(kept_for),
        )  # fmt: skip

    def on_loop(self) -> Entry | None:
        """The job that keeps the event loop right now."""
        sight = self.look()
        if not sight.on_loop or not sight.begun:
            return None
        job_id, version, task, limit = BEGINNING.unpack_from(self.memory, _ring_at(sight.begun - 1))
        return Entry(UUID(bytes=job_id), version, task, 0, sight.on_loop, sight.on_loop + limit)

    def waiting(self) -> list[Entry]:
        """Jobs that began and wait, or run in threads."""
        found = []
        for place in range(self.look().tabled):
            job_id, *rest = ENTRY.unpack_from(self.memory, TABLE_AT + place * ENTRY.size)
            if job_id != NOBODY:
                found.append(Entry(UUID(bytes=job_id), *rest))
        return found

    def began_lately(self) -> frozenset[tuple[UUID, int]]:
        """The jobs that began last, with their versions, whether they have ended or not."""
        places = range(min(self.look().begun, RING))
        found = (BEGINNING.unpack_from(self.memory, _ring_at(place)) for place in places)
        return frozenset((UUID(bytes=job_id), version) for job_id, version, _, _ in found)

    def last_lines(self) -> tuple[str, ...]:
        (written,) = COUNT.unpack_from(self.memory, WRITTEN)
        text = self.memory[LINES_AT : LINES_AT + min(written, LINES)]
        if written > LINES:
            at = written % LINES
            text = (text[at:] + text[:at]).partition(b"\n")[2]  # the oldest line has lost its head
        return tuple(text.decode("utf-8", "replace").splitlines())

    def keep(self, session: UUID, sent: float) -> None:
        """Note that the supervisor's beat for this session, sent at `sent`, was answered."""
        if self.memory[KEPT_FOR : KEPT_FOR + 16] != session.bytes:
            TIME.pack_into(self.memory, KEPT, 0.0)  # else the old time would speak for the new session
            ID.pack_into(self.memory, KEPT_FOR, session.bytes)
        TIME.pack_into(self.memory, KEPT, sent)

    # What the child writes

    def set_phase(self, phase: Phase) -> None:
        SMALL.pack_into(self.memory, PHASE, phase)

    def tabulate(self, place: int, entry: bytes) -> None:
        at = TABLE_AT + place * ENTRY.size
        self.memory[at : at + ENTRY.size] = entry

    def write_line(self, line: str) -> None:
        """Add a line to the log's end; the oldest give way."""
        text = line.replace("\n", " | ").encode("utf-8", "replace")[: LINES // 8] + b"\n"
        (written,) = COUNT.unpack_from(self.memory, WRITTEN)
        at = written % LINES
        head = text[: LINES - at]
        self.memory[LINES_AT + at : LINES_AT + at + len(head)] = head
        if rest := text[len(head) :]:
            self.memory[LINES_AT : LINES_AT + len(rest)] = rest
        COUNT.pack_into(self.memory, WRITTEN, written + len(text))


def shared_file(size: int) -> int:
    """A file without a name, for memory that two processes share; its descriptor."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("rota")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def _ring_at(number: int) -> int:
    return RING_AT + number % RING * BEGINNING.size


def _uuid(found: bytes) -> UUID | None:
    return None if found == NOBODY else UUID(bytes=found)
