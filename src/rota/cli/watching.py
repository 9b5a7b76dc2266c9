"""Notice that source files changed, by their times: no service, no dependency, any file system."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SKIPPED = {"__pycache__", "node_modules", "site-packages"}
WATCHED = (".py", ".toml")
Snapshot = dict[str, tuple[int, int]]


class Watch:
    """What the sources below some directories looked like, and which of them changed since."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self.roots = sorted({root.resolve() for root in roots})
        self.seen = self._snapshot()

    def changed(self) -> list[str]:
        """The files that are new, gone or different since the last look."""
        now = self._snapshot()
        before, self.seen = self.seen, now
        return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))

    def _snapshot(self) -> Snapshot:
        return {entry.path: _mark(entry) for root in self.roots for entry in _sources(root)}


def _mark(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        status = entry.stat()
    except OSError:  # removed between the listing and the look
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def _sources(root: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [str(root)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:  # removed, or not ours to read
            continue
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            continue  # a virtual environment: large, and not what is being written
        for entry in entries:
            if entry.name.startswith(".") or entry.name in SKIPPED:
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.name.endswith(WATCHED):
                yield entry
