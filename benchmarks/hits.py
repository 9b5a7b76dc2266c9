"""What every peer's job handler does: append one record to a file, so that the runner can count from outside.

A drained job (t0 = 0) adds one byte to the file named by BENCH_HITS; a timed job adds the seconds since t0 as a
float64 to the same name with ".timed". An O_APPEND write is atomic: any number of processes and threads may share them.
"""

import os
import struct
import time

_PATH = os.environ.get("BENCH_HITS", os.devnull)
_fds: dict[str, int] = {}


def _append(path: str, record: bytes) -> None:
    fd = _fds.get(path)
    if fd is None:
        fd = _fds[path] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, record)


def hit(t0: float) -> None:
    if t0:
        _append(_PATH + ".timed", struct.pack("d", time.time() - t0))
    else:
        _append(_PATH, b".")
