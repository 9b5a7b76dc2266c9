"""As whom the embedded server runs: PostgreSQL refuses to be root, so root lends it another account."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rota.errors import EmbeddedUnavailable

if TYPE_CHECKING:
    from pathlib import Path

SERVICE_ACCOUNTS = ("postgres", "_postgres", "nobody")  # as Linux, macOS and everybody call them


@dataclass(frozen=True, slots=True)
class Account:
    """Another user of this machine, for processes that root starts."""

    uid: int
    gid: int
    name: str

    def reaches(self, path: Path) -> bool:
        """Whether this account may walk down to `path` and enter (or, for a file, execute) it."""
        return all(self._passes(step) for step in (path, *path.parents))

    def _passes(self, step: Path) -> bool:
        # By mode bits alone: where an access list grants more, we merely settle elsewhere.
        found = step.stat()
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid == self.gid:
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)


def am_root() -> bool:
    return os.geteuid() == 0


def account_of(path: Path) -> Account:
    """The account that owns `path`. PostgreSQL runs only as the owner of its files."""
    found = path.stat()
    return Account(found.st_uid, found.st_gid, name_of(found.st_uid))


def account_for(directory: Path) -> Account | None:
    """Whom root lends a new server in `directory`; None if none of the candidates could reach it.

    The directory's own owner comes first, so that a project of alice stays wholly hers even when
    root starts its server.
    """
    candidates = [account for account in (_owner(directory), *_service_accounts()) if account is not None]
    if not candidates:
        raise EmbeddedUnavailable(
            "PostgreSQL refuses to run as root, and this machine has none of the users "
            f"{', '.join(SERVICE_ACCOUNTS)} to run it instead. Add one (useradd --system postgres), "
            "run Rota as a plain user, or set DATABASE_URL to a PostgreSQL server."
        )
    return next((account for account in candidates if account.reaches(directory)), None)


def name_of(uid: int) -> str:
    """The user's name, or its number where the machine has no name for it (as in many containers)."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def give(path: Path, account: Account | None) -> None:
    """Let `account` own what root has just made; a plain user owns it already."""
    if account is not None:
        # Never through a link: the directory around it may belong to somebody else.
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def _owner(directory: Path) -> Account | None:
    import pwd

    uid = directory.stat().st_uid
    if uid == 0:
        return None
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # initdb wants its user to have a name
        return None
    return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)


def _service_accounts() -> list[Account]:
    import pwd

    found = []
    for name in SERVICE_ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        found.append(Account(entry.pw_uid, entry.pw_gid, entry.pw_name))
    return found
