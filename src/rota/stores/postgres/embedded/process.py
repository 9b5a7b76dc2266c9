"""The processes of one embedded PostgreSQL: its pid file, its socket, its birth and its end."""

from __future__ import annotations

import errno
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from psycopg import pq

from rota.errors import EmbeddedUnavailable
from rota.stores.postgres.embedded.account import give
from rota.stores.postgres.embedded.trouble import ELSEWHERE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.stores.postgres.embedded.account import Account
    from rota.stores.postgres.embedded.binaries import Binaries

PORT = 5432  # only part of the socket's name
SOCKET = f".s.PGSQL.{PORT}"
NAMED = "run"
"""A link to the directory of the socket: the address of a server stays the same when it is started again."""
CONTROL = struct.Struct("=QIIi")
"""How PostgreSQL's control file begins, in every version: whose it is, two versions, and the state."""
STOPPED = (1, 2, 3)  # shut down, shut down in recovery, shutting down
LONGEST_SOCKET = 103  # bytes of a socket's path: macOS takes 103, Linux 107
LONGEST_LOG = 4 * 1024 * 1024
LONGEST_QUOTE = 64 * 1024
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
"""All that the server sees of ours: the caller's secrets are not for the account that root lends it."""


@dataclass(frozen=True, slots=True)
class PidFile:
    """What a server writes about itself into its directory."""

    pid: int
    files: Path
    sockets: Path
    ready: bool


class Postmaster:
    """The server whose files are in `home`. Holds no state of its own: all is read from disk and socket."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.files = home / "data"
        self.log = home / "server.log"

    def pid_file(self) -> PidFile | None:
        """None if there is none, or one that is still being written."""
        try:
            lines = (self.files / "postmaster.pid").read_text().splitlines()
            return PidFile(int(lines[0]), Path(lines[1]), Path(lines[4]), lines[7].strip() == "ready")
        except (FileNotFoundError, NotADirectoryError, IndexError, ValueError):
            return None

    def url(self) -> str | None:
        """The address, if the server accepts connections at this moment."""
        found = self.pid_file()
        if found is None or not found.ready:
            return None  # not asked before it is ready: each question would be a line in its log
        # After a move the recorded paths are the old ones; in a copy they are those of the original.
        sockets = found.sockets if _same(found.files, self.files) else self.home / found.sockets.name
        if not (sockets / SOCKET).exists():
            return None
        if _same(self.home / NAMED, sockets) and _usable(self.home / NAMED):
            sockets = self.home / NAMED
        url = f"postgresql://rota@/rota?host={quote(str(sockets))}&port={PORT}"
        answer = pq.PGconn.ping(f"{url}&connect_timeout=2".encode())
        return url if answer == pq.Ping.OK else None

    def pid(self) -> int | None:
        """The process of the running server, if it is certain to be this one."""
        found = self.pid_file()
        if found is None or not _serves(found.pid, found.files):
            return None
        return found.pid

    def was_stopped(self) -> bool:
        """Whether the last server ended because somebody wanted it to; its files say so for as long as they are there.

        False while one runs, too. The pid file would not do: a start that fails removes it.
        """
        with (self.files / "global" / "pg_control").open("rb") as control:
            *_, state = CONTROL.unpack(control.read(CONTROL.size))
        return state in STOPPED

    def is_run_by_hand(self) -> bool:
        """Whether somebody started a server here without us (pg_ctl), and so without our lock."""
        found = self.pid_file()
        return found is not None and _same(found.files, self.files) and self.pid() is not None

    def spawn(self, binaries: Binaries, account: Account | None, alive: int) -> int:
        """Start a server that outlives us; give back where in the log its words begin.

        It gets its own session, so no Ctrl-C reaches it, and no parent, so it never lingers as a
        zombie of ours. It inherits the lock `alive`. The caller has made sure that no other one runs.
        """
        self.sweep()
        private = settings(
            listen_addresses="",
            unix_socket_directories=self._make_sockets(account),
            unix_socket_permissions="0700",
            logging_collector="off",
        )
        server = [str(binaries.program("postgres")), "-D", str(self.files), "-p", str(PORT), *private]
        into_the_background = ["/bin/sh", "-c", '"$@" &', "sh", *server]
        log = self._open_log(account)
        try:
            begin = os.fstat(log).st_size
            run(into_the_background, account=account, alive=alive, output=log, detached=True)
        finally:
            os.close(log)
        return begin

    def interrupt(self) -> None:
        """Ask for a fast shutdown: open transactions are rolled back, everything committed stays."""
        pid = self.pid()
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)

    def sockets_made(self) -> list[Path]:
        """The directories that `spawn` made for sockets, as far as they are known."""
        found = self.pid_file()
        made = list(self.home.glob("run-*"))
        if found is not None and found.sockets.name.startswith("rota-") and _same(found.files, self.files):
            made.append(found.sockets)
        return made

    def sweep(self, sockets: Sequence[Path] = ()) -> None:
        """Remove what a dead server left: PostgreSQL would believe in any process of the same number."""
        for directory in (*sockets, *self.sockets_made()):
            _remove_sockets(directory)
        (self.home / NAMED).unlink(missing_ok=True)
        (self.files / "postmaster.pid").unlink(missing_ok=True)

    def said(self, since: int = 0) -> str:
        """The log from byte `since` on, or its end."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(since, os.fstat(log.fileno()).st_size - LONGEST_QUOTE))
                return log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def _make_sockets(self, account: Account | None) -> Path:
        # A new directory for each start. Nobody can have made it before us, and a server whose directory was
        # deleted under it cannot, when it notices, remove the socket of its successor.
        temporary = Path(tempfile.gettempdir()).resolve()
        for prefix, parent in (("run-", self.home), ("rota-", temporary), ("rota-", Path("/tmp"))):  # noqa: S108
            if _usable(parent / f"{prefix}12345678") and (account is None or account.reaches(parent)):
                sockets = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))  # mode 700
                give(sockets, account)
                self._name(sockets)
                return sockets
        raise EmbeddedUnavailable(
            f"no directory is short enough for the socket of the embedded PostgreSQL in {self.home}, free of "
            f"blanks and signs, and open to its user (tried that, {temporary} and /tmp; {LONGEST_SOCKET} bytes "
            f"is the limit). Set TMPDIR to one that is. {ELSEWHERE}"
        )

    def _name(self, sockets: Path) -> None:
        """Let the link lead there, by a name and not by a path where it can: it is right after a move, too."""
        new = self.home / f"{NAMED}.new"
        new.unlink(missing_ok=True)
        new.symlink_to(sockets.name if sockets.parent == self.home else sockets)
        new.replace(self.home / NAMED)

    def _open_log(self, account: Account | None) -> int:
        with suppress(FileNotFoundError):
            if self.log.stat().st_size > LONGEST_LOG:
                self.log.replace(self.log.with_suffix(".log.old"))
        log = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        give(self.log, account)
        return log


def run(
    command: Sequence[str | Path],
    *,
    account: Account | None,
    alive: int,
    output: int = subprocess.PIPE,
    typed: str | None = None,
    detached: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program as `account`, with `alive` held until its last process ends."""
    loader = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    try:
        return subprocess.run(  # noqa: S603
            [str(word) for word in command],
            check=False,
            text=True,
            input=typed,
            stdin=subprocess.DEVNULL if typed is None else None,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=ENVIRONMENT | loader,
            user=None if account is None else account.uid,
            group=None if account is None else account.gid,
            extra_groups=None if account is None else [],
            umask=0o077,
            pass_fds=[alive],
            start_new_session=detached,
        )
    except PermissionError as error:
        if account is None or error.errno != errno.EPERM:
            raise
        raise EmbeddedUnavailable(
            f"PostgreSQL refuses to run as root, and root may not run it as {account.name} here: "
            f"{error.strerror}. Run Rota as a plain user, or set DATABASE_URL to a PostgreSQL server."
        ) from error


def settings(**values: str | int | Path) -> list[str]:
    """Settings as every PostgreSQL program takes them."""
    return [word for name, value in values.items() for word in ("-c", f"{name}={value}")]


def _usable(sockets: Path) -> bool:
    """Whether a socket may be there: both libpq and the server read lists, with commas, quotes and blanks."""
    fits = len(os.fsencode(sockets / SOCKET)) <= LONGEST_SOCKET
    return fits and re.fullmatch(r"[A-Za-z0-9/._+-]+", str(sockets)) is not None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _remove_sockets(directory: Path) -> None:
    with suppress(OSError):
        (directory / SOCKET).unlink(missing_ok=True)
        (directory / f"{SOCKET}.lock").unlink(missing_ok=True)
        directory.rmdir()


def _serves(pid: int, files: Path) -> bool:
    """Whether process `pid` is a PostgreSQL server on `files`, and not whatever got its number later."""
    words = _command_line(pid)
    if words[:1] != ["postgres"]:
        return False
    if "-D" not in words:
        return True  # started by hand, its directory named by environment
    named = words[words.index("-D") + 1]
    return named == str(files) or not named.startswith("/")


def _command_line(pid: int) -> list[str]:
    """The words of a process's command, the program's name without its path; nothing for a zombie."""
    if sys.platform == "linux":
        try:
            program, *words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
        except OSError:
            return []
    else:
        command = ["/bin/ps", "-ww", "-o", "args=", "-p", str(pid)]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
        # All in one line there. We start servers with the directory first, then the port.
        program, _, rest = said.partition(" -D ")
        directory, _, _ = rest.partition(f" -p {PORT}")
        words = ["-D", directory] if directory else []
    return [program.rpartition("/")[2].strip(), *words]
