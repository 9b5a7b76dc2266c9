"""What went wrong with the embedded server, in words that say what to do next."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rota.errors import EmbeddedUnavailable, RotaError, StoreFull, StoreUnavailable
from rota.stores.postgres.embedded.account import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ELSEWHERE = "Name another directory (ROTA_URL=embedded:PATH), or set DATABASE_URL to a PostgreSQL server."

MEGABYTE = 1024 * 1024
FULL = ("No space left on device", "Disk quota exceeded")
PASSING = ("pre-existing shared memory block", 'lock file "postmaster.pid" already exists')
"""What a server says that met the last processes of the one before it. Waiting helps."""


def will_pass(said: str) -> bool:
    return any(sign in said for sign in PASSING)


def failure(said: str, *, what: str) -> RotaError:
    """The error for a PostgreSQL program that ended with the words `said`."""
    if any(sign in said for sign in FULL):
        return StoreFull(f"{what} failed: the disk is full. Free some space. {ELSEWHERE}")
    if "could not look up effective user ID" in said:
        return EmbeddedUnavailable(
            f"{what} failed: PostgreSQL wants its user to have a name, and this machine has none for uid "
            f"{os.geteuid()}. Add it to /etc/passwd, run Rota as a user that has a name, "
            "or set DATABASE_URL to a PostgreSQL server."
        )
    return EmbeddedUnavailable(f"{what} failed. {ELSEWHERE} PostgreSQL said:\n{tail(said)}")


def too_slow(seconds: float, *, path: Path, log: Path, said: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"the embedded PostgreSQL in {path} did not come up in {seconds:g} seconds. It may still be "
        f"recovering after a crash, or a process of its predecessor may hang: try again, or look into "
        f"{log}, which ends with:\n{tail(said) or '  (nothing)'}"
    )


def full(path: Path, free: int, wanted: int) -> StoreFull:
    return StoreFull(
        f"the disk of {path} has {free // MEGABYTE} MB left, and a new embedded PostgreSQL wants "
        f"{wanted // MEGABYTE} MB. Free some space. {ELSEWHERE}"
    )


def tail(said: str, lines: int = 12) -> str:
    return "\n".join(f"  {line}" for line in said.strip().splitlines()[-lines:])


@contextmanager
def in_plain_words(path: Path) -> Iterator[None]:
    """Let no bare OSError out: say what it means for the server in `path`."""
    try:
        yield
    except OSError as error:
        raise _translated(error, path) from error


def _translated(error: OSError, path: Path) -> RotaError:
    where = Path(error.filename or path)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"writing {where} for the embedded PostgreSQL failed: the disk is full. {ELSEWHERE}")
    if error.errno in (errno.EACCES, errno.EPERM):
        return EmbeddedUnavailable(
            f"user {name_of(os.geteuid())} may not use {where} for the embedded PostgreSQL: {error.strerror}"
            f"{_whose(where)}. Run Rota as the owner, or give this user the right. {ELSEWHERE}"
        )
    return EmbeddedUnavailable(
        f"the embedded PostgreSQL cannot use {where}: {error.strerror or error}. {ELSEWHERE}"
    )


def _whose(path: Path) -> str:
    for step in (path, *path.parents):
        with suppress(OSError):
            return f" ({step} belongs to {name_of(step.stat().st_uid)})"
    return ""
