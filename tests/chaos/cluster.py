"""A PostgreSQL server of our own that may be hurt: stopped in the middle of everything, and started again."""

from __future__ import annotations

import asyncio
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

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from rota.stores.postgres.embedded.account import account_for, am_root, give
from rota.stores.postgres.embedded.binaries import from_wheel, within_reach

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "64MB",
    "timezone": "UTC",
}
COPIED = {"wal_level": "replica", "hot_standby": "on", "wal_sender_timeout": "5s"}
"""Of a server that a standby follows."""


class Cluster:
    """The programs of the embedded server with a directory and a loopback port that stay the same over restarts."""

    def __init__(
        self,
        *,
        max_connections: int = 100,
        settings: Mapping[str, str] | None = None,
        small: str | None = None,
    ) -> None:
        """`small` ("wal" or "data", and megabytes: "wal=64") puts its log or its data on a small disk of its own."""
        self._home = Path(tempfile.mkdtemp(prefix="rota-chaos-")).resolve()
        self._home.chmod(0o755)  # so that the account below may come in; its own directory is private
        self.account = account_for(self._home) if am_root() else None
        self._programs = within_reach(from_wheel(), self.account)
        self._data = self._home / "data"
        self._data.mkdir(mode=0o700)
        give(self._data, self.account)
        self.port = _free_port()
        self.settings = SETTINGS | {"max_connections": str(max_connections)} | dict(settings or {})
        self.disk = SmallDisk(self, small.partition("=")[2]) if small else None
        self._make(self.disk.place / "wal" if self.disk and small and small.startswith("wal") else None)

    def _make(self, wal: Path | None) -> None:
        words = ["-U", "rota", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]
        self._run("initdb", "-D", self._data, *words, *(["-X", wal, "--wal-segsize=1"] if wal else []))

    def own_address(self) -> str:
        """Host and port, as they stand in an address of several servers."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"postgresql://rota@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start, and wait until it has recovered and answers."""
        told = self.settings | {"port": str(self.port)}
        words = " ".join(f"-c {name}='{value}'" for name, value in told.items())
        log = self._data / "server.log"
        self._run("pg_ctl", "start", "-D", self._data, "-w", "-t", "60", "-l", log, "-o", words)

    def start_migrated(self) -> None:
        """Start, and make our schema in it."""
        from rota.stores.postgres import PostgresStore

        self.start()

        async def migrate() -> None:
            store = PostgresStore(self.url)
            await store.migrate()
            await store.close()

        asyncio.run(migrate())

    def configure(self, settings: Mapping[str, str]) -> None:
        """Change settings of the running server."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for name, value in settings.items():
                connection.execute(SQL("ALTER SYSTEM SET {} = {}").format(Identifier(name), Literal(value)))
            connection.execute("SELECT pg_reload_conf()")

    def start_if_stopped(self) -> None:
        """Start it unless it recovers by itself."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            with suppress(AssertionError):  # it is just coming up, or just ending
                self.start()
            time.sleep(0.1)
        raise AssertionError(f"the server does not start: {self._last_words()}")

    def stop_hard(self) -> None:
        """As if the machine had lost its power, but for the disk: no checkpoint, no goodbye to clients."""
        self._run("pg_ctl", "stop", "-D", self._data, "-m", "immediate", "-w")

    @staticmethod
    def kill(pid: int) -> None:
        """Kill one of its processes; the others throw their clients out, and it recovers."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def own_directory(self, name: str) -> Path:
        """A new directory beside the server's files that the server may write to."""
        path = self._home / name
        path.mkdir(mode=0o700)
        give(path, self.account)
        return path

    def destroy(self) -> None:
        if (self._data / "postmaster.pid").exists():
            with suppress(AssertionError):  # it has ended by itself, and its file is a leftover
                self.stop_hard()
        if self.disk is not None:
            self.disk.unmount()
        shutil.rmtree(self._home)

    def log(self) -> str:
        return (self._data / "server.log").read_text(errors="replace")

    def _run(self, program: str, *words: str | Path) -> None:
        account = self.account
        # Into a file: the server inherits it, and would keep a pipe open for ever.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [self._programs.program(program), *words],
                check=False,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
                user=None if account is None else account.uid,
                group=None if account is None else account.gid,
                extra_groups=None if account is None else [],
            )
            output.seek(0)
            assert done.returncode == 0, f"{program} failed: {output.read()}\n{self._last_words()}"

    def _last_words(self) -> str:
        return self.log()[-2000:] if (self._data / "server.log").exists() else ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class SmallDisk:
    """Some megabytes of memory, mounted as a disk for a server, with ballast to fill them."""

    def __init__(self, server: Cluster, megabytes: str) -> None:
        self.place = server.own_directory("disk")
        owner = self.place.stat()
        options = f"size={megabytes}m,mode=0700,uid={owner.st_uid},gid={owner.st_gid}"
        mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.place)]
        done = subprocess.run(mount, check=False, capture_output=True, text=True)
        self.mounted = done.returncode == 0
        self.why = done.stderr.strip()
        """Why it could not be mounted: only root may, and not in every container."""
        self._ballast = self.place / "ballast"

    def fill(self) -> None:
        with suppress(OSError), self._ballast.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", self.place], check=True)
            self.mounted = False


class Standby(Cluster):
    """A copy of another server that follows it, until it is promoted."""

    def __init__(self, primary: Cluster, *, name: str = "standby") -> None:
        self._primary, self._name = primary, name
        super().__init__(settings=dict(primary.settings))

    def _make(self, wal: Path | None) -> None:
        source = f"host=127.0.0.1 port={self._primary.port} user=rota application_name={self._name}"
        self._run("pg_basebackup", "-D", self._data, "-d", source, "-R", "--checkpoint=fast", "--no-sync")

    def promote(self) -> None:
        """Make it the primary; it takes writes when this returns."""
        self._run("pg_ctl", "promote", "-D", self._data, "-w")


def caught_up(primary: Cluster) -> None:
    """Wait until the standby has all that the primary has."""
    question = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()"
    with psycopg.connect(primary.url, autocommit=True) as connection:
        deadline = time.monotonic() + 20
        while connection.execute(question).fetchone() != (1,):
            assert time.monotonic() < deadline, primary.log()
            time.sleep(0.05)
