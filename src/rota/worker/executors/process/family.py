"""A child's family: everything it started, wherever that went, and the ending of it.

A handler may fork, and what it forks may fork again and leave group, session and
parent behind. What it cannot easily leave is its environment: each child carries
a mark of its own there, and its descendants inherit it. Where there is no /proc,
the process group has to do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

MARK = "ROTA_CHILD"
"""The variable that marks a child and its descendants: `pid namespace:worker pid:when the worker began:number`."""

PROC = Path("/proc")
ROUNDS = 20
GONE_WITHIN = 0.5


def worker_mark() -> str:
    """What the marks of all children of this worker begin with.

    The start time tells a reused pid from the old one; the namespace tells the
    processes of containers, whose pids mean something else, from our own.
    """
    return f"{_namespace()}:{os.getpid()}:{_began(os.getpid()) or 0}:"


def members(mark: str, leader: int | None = None) -> set[int]:
    """Living processes that carry the mark, or belong to the session of `leader`, or descend from it."""
    found: set[int] = set()
    wanted = f"{MARK}={mark}".encode()
    parents: dict[int, int] = {}
    for pid in _pids():
        seen = _stat(pid)
        if seen is None or seen[0] in "ZX":
            continue
        parents[pid] = seen[1]
        related = leader is not None and leader in (pid, seen[2], seen[3])
        if related or _carries(pid, wanted, whole=not mark.endswith(":")):
            found.add(pid)
    grown = True
    while grown and leader is not None:
        grown = False
        for pid, parent in parents.items():
            if pid not in found and (parent in found or parent == leader):
                found.add(pid)
                grown = True
    found.discard(os.getpid())
    return found


def end(mark: str, leader: int) -> int:
    """End a child and all that it started; how many there were. Returns when they are gone, or soon after.

    The leader is stopped first, so that it starts nothing more while we look,
    and dies last, so that what is orphaned meanwhile still comes to it.
    """
    if not _has_proc():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
        return 1
    _signal([leader], signal.SIGSTOP)
    ended = _end_all(lambda: members(mark, leader) - {leader})
    _signal([leader], signal.SIGKILL)
    return ended + 1


def sweep(worker: int, began: str | None = None) -> int:
    """End what the children of a worker that is gone have left behind; how many there were."""
    if not _has_proc():
        return 0
    prefix = f"{_namespace()}:{worker}:" + ("" if began is None else f"{began}:")
    return _end_all(lambda: members(prefix))


def sweep_orphans() -> int:
    """End what children of any dead worker have left behind on this machine."""
    if not _has_proc():
        return 0
    dead: set[tuple[int, str]] = set()
    here = _namespace()
    for pid in _pids():
        parts = (_mark_of(pid) or "").split(":")
        if len(parts) != 4 or parts[0] != here or not parts[1].isdigit():
            continue
        if str(_began(int(parts[1]))) != parts[2]:
            dead.add((int(parts[1]), parts[2]))
    return sum(sweep(worker, began) for worker, began in dead)


def children_of(pid: int) -> frozenset[int]:
    """The processes that a child has started or adopted, as the kernel lists them; cheap enough after every job."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in (PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                found.update(map(int, (task / "children").read_text(encoding="ascii").split()))
    return frozenset(found)


def _end_all(look: Callable[[], set[int]]) -> int:
    """End what `look` finds until it finds nothing more: what is ended may have started others meanwhile."""
    ended: set[int] = set()
    for _ in range(ROUNDS):
        rest = look() - ended  # one that hangs in the system is not waited for twice
        if not rest:
            break
        ended |= rest
        _signal(rest, signal.SIGKILL)
        _until_gone(rest)
    return len(ended)


def _namespace() -> str:
    try:
        return str((PROC / "self/ns/pid").stat().st_ino)
    except OSError:
        return "0"


def _has_proc() -> bool:
    return sys.platform == "linux" and (PROC / "self").exists()


def _pids() -> Iterator[int]:
    with contextlib.suppress(OSError):
        for entry in os.scandir(PROC):
            if entry.name.isdigit():
                yield int(entry.name)


def _stat(pid: int) -> tuple[str, int, int, int] | None:
    """State, parent, group and session of a process."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        state, parent, group, session = text.rpartition(")")[2].split()[:4]
        return state, int(parent), int(group), int(session)
    except (OSError, ValueError):
        return None


def _began(pid: int) -> int | None:
    """When a process began, in ticks since the machine did; None when there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # gone, or another user's
        return []


def _carries(pid: int, wanted: bytes, *, whole: bool) -> bool:
    return any(line == wanted if whole else line.startswith(wanted) for line in _environment(pid))


def _mark_of(pid: int) -> str | None:
    start = f"{MARK}=".encode()
    found = next((line for line in _environment(pid) if line.startswith(start)), None)
    return None if found is None else found[len(start) :].decode(errors="replace")


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _until_gone(pids: set[int]) -> None:
    """Wait shortly until none of these lives; one that hangs in the system is not waited for."""
    end_at = time.monotonic() + GONE_WITHIN
    pause = 0.0005
    while any((seen := _stat(pid)) is not None and seen[0] not in "ZX" for pid in pids):
        if time.monotonic() > end_at:
            return
        time.sleep(pause)
        pause = min(0.01, pause * 2)
