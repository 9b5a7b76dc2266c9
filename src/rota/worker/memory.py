"""How much memory a process uses, as the system tells it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

try:
    import resource
except ImportError:  # no such system
    resource = None  # type: ignore[assignment]

_PAGE = 4096 if resource is None else resource.getpagesize()


def memory_of(pid: int) -> int | None:
    """Bytes that a living process uses now; None: it is gone, or the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE or None
    except (OSError, ValueError, IndexError):
        return None


def memory_used() -> int | None:
    """Bytes that this process uses now; where the system does not say, the most that it ever did. None: unknown."""
    used = memory_of(os.getpid())
    if used is not None or resource is None:
        return used
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (most if sys.platform == "darwin" else most * 1024) or None
