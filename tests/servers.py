"""PostgreSQL servers of our own: one with other programs than the embedded one, or one that a test may change.

`ROTA_TEST_POSTGRES` chooses the programs for a whole run: a major version (15), a directory that holds
`bin/postgres`, or `system`, the oldest that Debian's packages have put on this machine.
`ROTA_TEST_POOLER=pgbouncer` puts a PgBouncer in transaction mode between every test and its server.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg

from rota.stores.postgres.embedded.account import Account, account_for, am_root, give
from rota.stores.postgres.embedded.binaries import from_wheel, within_reach
from rota.stores.postgres.embedded.process import Postmaster

VARIABLE = "ROTA_TEST_POSTGRES"
DEBIAN = Path("/usr/lib/postgresql")
MEMORY = Path("/dev/shm")  # Linux keeps it in memory
OURS = "rota-tests-"
"""How directories begin that tests make for servers; the number of the process that made it follows."""
ROOM = 2 * 1024**3  # more than the servers of a few processes of tests have ever filled
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "64MB",
    "timezone": "UTC",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


POOLER = """
[databases]
* = host=127.0.0.1 port={server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {home}/users
admin_users = rota
pool_mode = {mode}
default_pool_size = {size}
min_pool_size = 0
max_client_conn = 1000
logfile = {home}/log
{more}
"""


def pooled() -> bool:
    """Whether ROTA_TEST_POOLER puts a pooler before the server of this run."""
    asked = os.environ.get("ROTA_TEST_POOLER") or None
    assert asked in (None, "pgbouncer"), f"ROTA_TEST_POOLER={asked}; only pgbouncer is known"
    return asked is not None


def chosen() -> str | None:
    """What ROTA_TEST_POSTGRES asks for; None: the embedded server."""
    return os.environ.get(VARIABLE) or None


def programs(account: Account | None, wanted: str | None = None) -> Path:
    """The directory of a server's programs, at a place where `account` may run them."""
    if wanted is None:
        return within_reach(from_wheel(), account).prefix / "bin"
    if wanted == "system":
        found = sorted(DEBIAN.glob("[0-9]*/bin/postgres"), key=lambda path: float(path.parts[-3]))
        assert found, f"{VARIABLE}=system, but {DEBIAN} has no server. On Debian: apt-get install postgresql"
        return found[0].parent
    directory = DEBIAN / wanted / "bin" if wanted.isdigit() else Path(wanted) / "bin"
    assert (directory / "postgres").exists(), f"{VARIABLE}={wanted}, but there is no {directory}/postgres"
    return directory


def new_home() -> Path:
    """A new directory for a server that nobody will miss, in memory if there is room.

    Every test makes and drops a database of some hundred files. A disk's file system (ext4) keeps inodes that were
    just freed aside for seconds and looks each of them up again for every new file: half of a run was spent on that.
    """
    in_memory = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    if in_memory:
        _sweep()
    home = Path(tempfile.mkdtemp(prefix=f"{OURS}{os.getpid()}-", dir=MEMORY if in_memory else None)).resolve()
    home.chmod(0o755)  # root's server runs as another account, which must pass; its own directory is private
    return home


def _sweep() -> None:
    """Remove what runs of tests that were killed have left in memory, their servers included."""
    for home in MEMORY.glob(f"{OURS}*"):
        maker = home.name.removeprefix(OURS).partition("-")[0]
        if psutil.pid_exists(int(maker)):
            continue
        number = Postmaster(home).pid()
        if number is not None:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGQUIT)
        shutil.rmtree(home, ignore_errors=True)


class Server:
    """One server with a directory and a loopback port of its own; anybody may log in unless `hba` says otherwise."""

    def __init__(
        self, wanted: str | None = None, *, settings: Mapping[str, str] | None = None, hba: str = ""
    ) -> None:
        self.home = new_home()
        self.account = account_for(self.home) if am_root() else None
        self._programs = programs(self.account, wanted)
        self.files = self.home / "data"
        self.files.mkdir(mode=0o700)
        give(self.files, self.account)
        self.port = free_port()
        self._settings = SETTINGS | {"port": str(self.port)} | dict(settings or {})
        self.run(
            "initdb", "-D", self.files, "-U", "rota", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )
        rules = self.files / "pg_hba.conf"
        rules.write_text(hba + rules.read_text())

    @property
    def url(self) -> str:
        return f"postgresql://rota@127.0.0.1:{self.port}/postgres"

    def start(self) -> str:
        """Start, wait until it answers, and say where it is."""
        words = " ".join(f"-c {name}='{value}'" for name, value in self._settings.items())
        log = self.files / "server.log"
        self.run("pg_ctl", "start", "-D", self.files, "-w", "-t", "60", "-l", log, "-o", words)
        return self.url

    def stop(self) -> None:
        self.run("pg_ctl", "stop", "-D", self.files, "-m", "immediate", "-w")

    def destroy(self) -> None:
        if (self.files / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.home)

    def own_directory(self, name: str) -> Path:
        """A new directory beside the server's files that the server may write to."""
        path = self.home / name
        path.mkdir(mode=0o700)
        give(path, self.account)
        return path

    def run(self, program: str, *words: str | Path, text: str = "") -> str:
        """Run one of the server's programs as the server's user; what it printed."""
        with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as printed:
            given.write(text)
            given.seek(0)
            done = subprocess.run(
                [self._programs / program, *words],
                check=False,
                stdin=given,
                stdout=printed,  # a file: the server inherits it, and would keep a pipe open for ever
                stderr=subprocess.STDOUT,
                cwd="/",
                env=ENVIRONMENT,
                **as_account(self.account),
            )
            printed.seek(0)
            said = printed.read()
        assert done.returncode == 0, f"{program} {words} failed: {said}"
        return said


class Pooler:
    """A PgBouncer in front of a server, in any of its modes, with `size` server connections for each database."""

    def __init__(self, server: Server, *, mode: str = "transaction", size: int = 3, more: str = "") -> None:
        self.server = server
        self.port = free_port()
        self.home = server.own_directory(f"pooler-{self.port}")
        self._process: subprocess.Popen[bytes] | None = None
        self._file = self.home / "pooler.ini"
        self._file.write_text(
            POOLER.format(server=server.port, port=self.port, home=self.home, mode=mode, size=size, more=more)
        )
        self._file.chmod(0o644)
        users = self.home / "users"
        users.write_text("".join(f'"{user}" ""\n' for user in ("rota", "clerk")))
        users.chmod(0o644)

    def start(self) -> str:
        """Start, wait until it answers, and say where it is."""
        program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program, "pgbouncer is missing. On Debian: apt-get install pgbouncer (scripts/system.sh does)"
        self._process = subprocess.Popen(
            [program, "-q", self._file], cwd="/", **as_account(self.server.account)
        )
        deadline = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(self.url("pgbouncer"), connect_timeout=2).close()
                return self.url("postgres")
            except psycopg.OperationalError:
                log = self.home / "log"
                said = log.read_text() if log.exists() else "it said nothing"
                assert self._process.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.02)

    def url(self, database: str) -> str:
        return f"postgresql://rota@127.0.0.1:{self.port}/{database}"

    def before(self, url: str) -> str:
        """The same database as at this address of the server, by way of the pooler."""
        return self.url(urlsplit(url).path.removeprefix("/"))

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


def as_account(account: Account | None) -> dict[str, object]:
    """How subprocess is told to run something as another user."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": []}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def with_database(url: str, name: str) -> str:
    """The same server, another database."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()
