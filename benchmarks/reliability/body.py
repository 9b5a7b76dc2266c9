"""The handler body that every system runs: it writes down that it began, does what its job says, and that it ended.

A line is one write with O_APPEND, so lines of many processes never mix: what, job number, pid, monotonic seconds.
Only the standard library is used: this is imported into every peer's own environment.
"""

import asyncio
import os
import signal
import time

_files = {}


def note(file, what, n):
    """Append one line to the effects file."""
    if file not in _files:
        _files[file] = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(_files[file], f"{what} {n} {os.getpid()} {time.monotonic():.6f}\n".encode())


class Planned(Exception):
    """A failure that belongs to the plan."""


def _first(file, n):
    """Whether this is the first run of the job anywhere."""
    try:
        os.close(os.open(f"{file}.seen-{n}", os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


async def perform(n, s, file, how=""):
    """Sleep `s` seconds. `how`: poison then kills its own process, fail raises, later=X sleeps X from its second run on."""
    note(file, "start", n)
    if how.startswith("later=") and not _first(file, n):
        s = float(how[6:])
    try:
        if s:
            await asyncio.sleep(s)
        if how == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "fail":
            raise Planned("by plan")
    except asyncio.CancelledError:
        note(file, "cancelled", n)
        raise
    except Planned:
        note(file, "failed", n)
        raise
    note(file, "end", n)
