"""What a child asks of the system for itself: limits, who dies with whom, and who adopts whom."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from time import process_time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
OOM_SCORE = 500
"""Above any worker's: when the machine runs out of memory, the child goes before the worker."""

DUMP_SIGNAL: int = signal.SIGRTMIN + 7 if sys.platform == "linux" else signal.SIGUSR2
"""On this signal a child writes where all its threads are, even one that sits in C and holds the GIL."""


def settle_in(parent: int, limits: Mapping[str, float | None]) -> None:
    """Bind this process to its worker, adopt what its own children leave behind, and set its limits."""
    if sys.platform == "linux":
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE), encoding="ascii")
    if os.getppid() != parent:
        os._exit(0)  # the worker died before we could ask to die with it
    os.umask(int(limits["umask"] or 0))
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, limits["files"])
    _limit(resource.RLIMIT_DATA, limits["memory"])
    if limits["processes"] is not None:
        _limit(resource.RLIMIT_NPROC, limits["processes"])


def limit_cpu(seconds: float | None) -> None:
    """Let the job that begins now use so much processor time; then the system ends this process (SIGXCPU)."""
    if seconds is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        wanted = int(process_time() + seconds) + 1
        resource.setrlimit(
            resource.RLIMIT_CPU, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
        )


def _limit(kind: int, value: float | None) -> None:
    if value is None:
        return
    _, hard = resource.getrlimit(kind)
    wanted = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
    with contextlib.suppress(ValueError, OSError):  # a system that knows the limit but does not keep it
        resource.setrlimit(kind, (wanted, wanted))


def _prctl(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)
