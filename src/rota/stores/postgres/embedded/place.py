"""The directory of an embedded server: whose it is, where its files really are, and who may start it now."""

from __future__ import annotations

import json
import os
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rota.errors import EmbeddedUnavailable, StoreUnavailable
from rota.stores.postgres.embedded.account import (
    Account,
    account_for,
    account_of,
    am_root,
    give,
    name_of,
)
from rota.stores.postgres.embedded.binaries import roots_own
from rota.stores.postgres.embedded.trouble import ELSEWHERE

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = "embedded.json"
START_LOCK = "start.lock"
ALIVE_LOCK = "alive.lock"
MADE_FOR = "made_for"
OURS = frozenset({MARKER, f"{MARKER}.new", START_LOCK, ALIVE_LOCK, ".gitignore", "run", "run.new"})
PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class Settled:
    """Where the server's files are, and which account runs it; none when we run it ourselves."""

    home: Path
    account: Account | None


class Place:
    """The directory that the user named.

    The server's files are in its `home`: the same directory, unless root must lend the server an account
    that cannot get there (a project below root's private home). Then the marker file names the home.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()

    def home(self) -> Path | None:
        """Where the files are; None until a first start has decided it."""
        try:
            marker = json.loads((self.path / MARKER).read_text())
            return Path(marker["home"]) if "home" in marker else self.path
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError) as error:
            raise EmbeddedUnavailable(
                f"{self.path / MARKER} is damaged ({error}), and with it the note where the data "
                f'is. If it is in {self.path / "data"}, write {{"format": 1}} into it. {ELSEWHERE}'
            ) from error

    def make(self) -> None:
        """Make the directory, unless it is there. Anything that is not ours is refused and left alone."""
        self.refuse_foreign()
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            if am_root():
                # What root makes in the project of alice is hers, and its server can get in.
                path.chmod(0o755)
                give(path, account_of(path.parent))

    def refuse_foreign(self) -> None:
        if not self.path.exists() or (self.path / MARKER).exists():
            return
        found = sorted({entry.name for entry in self.path.iterdir()} - OURS)
        if found and not (self.path / MARKER).exists():  # made while we looked
            raise EmbeddedUnavailable(
                f"{self.path} is not an embedded server of Rota: it has no {MARKER}, but {len(found)} other "
                f"entries (such as {found[0]!r}). It was left untouched. {ELSEWHERE}"
            )

    def settle(self) -> Settled:
        """Decide, once, where the files go and who runs the server. Only under the start lock."""
        home = self.home()
        if home is None:
            self.refuse_foreign()
            home = self._found()
        elif home != self.path:
            self.check_home(home)
        files = home / "data"
        if not files.exists():
            return Settled(home, self._lent(home) if am_root() else None)
        owner = account_of(files)
        if am_root() and owner.uid != 0:
            return Settled(home, owner)
        if owner.uid == os.geteuid() and not am_root():
            return Settled(home, None)
        raise EmbeddedUnavailable(
            f"{files} belongs to {owner.name}, this process to {name_of(os.geteuid())}, and PostgreSQL runs "
            "only as the owner of its files, and never as root. Run Rota as the owner, or change that with "
            f"chown -R. {ELSEWHERE}"
        )

    def check_home(self, home: Path) -> None:
        """Make sure that a home elsewhere is there, and is ours alone."""
        note = home / MADE_FOR
        if not note.exists():
            raise EmbeddedUnavailable(
                f"the data of the embedded PostgreSQL in {self.path} was kept in {home}, and that is gone (a "
                f"container made anew?). Remove {self.path} to begin with an empty database. {ELSEWHERE}"
            )
        before = Path(note.read_text())
        if before == self.path:
            return
        if Place(before).home() == home:
            raise EmbeddedUnavailable(
                f"{self.path} is a copy: the data that it names, in {home}, belongs to {before}. "
                f"Remove {self.path} to begin with an empty database there. {ELSEWHERE}"
            )
        note.write_text(str(self.path))  # the project was moved, and its data goes on with it

    @contextmanager
    def alone(self, deadline: float) -> Iterator[None]:
        """Hold the start lock: one process at a time creates, starts or stops the server."""
        import fcntl

        while (lock := self._try(START_LOCK)) is None:
            self.make()  # if it was destroyed while we waited
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"another process has been starting or stopping the embedded PostgreSQL in {self.path} "
                    "for too long. Try again; if it does not end, look for a process that hangs."
                )
            time.sleep(PAUSE)
        try:
            yield
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)  # a child forked meanwhile would keep it by its copy
            os.close(lock)

    def take_alive(self) -> int | None:
        """The lock that a server holds as long as one of its processes lives; None while it is held.

        The server inherits it, so unlike a process number it cannot be stale or reused, is dropped by
        zombies, and counts across containers that share the directory.
        """
        return self._try(ALIVE_LOCK)

    def _try(self, name: str) -> int | None:
        import fcntl

        path = self.path / name
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            if am_root():
                give(path, account_of(self.path))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.stat().st_ino == os.fstat(lock).st_ino:  # else removed with its directory meanwhile
                return lock
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
        return None

    def _found(self) -> Path:
        if not am_root() or account_for(self.path) is not None:
            self._mark({})
            return self.path
        home = self._elsewhere()
        self._mark({"home": str(home)})
        return home

    def _elsewhere(self) -> Path:
        try:
            home = Path(tempfile.mkdtemp(prefix="server-", dir=roots_own()))
        except OSError:
            home = Path(tempfile.mkdtemp(prefix="rota-server-")).resolve()
        home.chmod(0o755)
        (home / MADE_FOR).write_text(str(self.path))
        return home

    def _lent(self, home: Path) -> Account:
        account = account_for(home)
        if account is None:
            raise EmbeddedUnavailable(
                f"PostgreSQL refuses to run as root, and no other user can reach {home}, where the data of "
                f"{self.path} would be. Run Rota as a plain user. {ELSEWHERE}"
            )
        return account

    def forsaken(self) -> list[Path]:
        """Homes elsewhere that were made for this very path, and that it no longer names."""
        with suppress(OSError):
            return [
                note.parent
                for note in roots_own().glob(f"server-*/{MADE_FOR}")
                if note.read_text() == str(self.path) and note.parent != self.home()
            ]
        return []

    def _mark(self, where: dict[str, str]) -> None:
        for name, text in ((".gitignore", "*\n"), (MARKER, json.dumps({"format": 1, **where}))):
            path, fresh = self.path / name, self.path / f"{MARKER}.new"
            fresh.unlink(missing_ok=True)
            with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            if am_root():
                give(fresh, account_of(self.path))
            fresh.replace(path)
