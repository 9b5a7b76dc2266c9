"""A PostgreSQL server of our own that may be hurt: stopped in the middle of everything, and started again."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from rota.stores.postgres.embedded.account import account_for, am_root, give
from rota.stores.postgres.embedded.binaries import from_wheel, within_reach

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "64MB",
    "timezone": "UTC",
}


class Cluster:
    """The programs of the embedded server with a directory and a loopback port that stay the same over restarts."""

    def __init__(self, *, max_connections: int = 100) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="rota-chaos-")).resolve()
        self._home.chmod(0o755)  # so that the account below may come in; its own directory is private
        self._account = account_for(self._home) if am_root() else None
        self._programs = within_reach(from_wheel(), self._account)
        self._data = self._home / "data"
        self._data.mkdir(mode=0o700)
        give(self._data, self._account)
        self.port = _free_port()
        self._settings = SETTINGS | {"max_connections": str(max_connections), "port": str(self.port)}
        self._run(
            "initdb",
            "-D",
            self._data,
            "-U",
            "rota",
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
        )

    @property
    def url(self) -> str:
        return f"postgresql://rota@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start, and wait until it has recovered and answers."""
        words = " ".join(f"-c {name}='{value}'" for name, value in self._settings.items())
        self._run(
            "pg_ctl",
            "start",
            "-D",
            self._data,
            "-w",
            "-t",
            "60",
            "-l",
            self._data / "server.log",
            "-o",
            words,
        )

    def stop_hard(self) -> None:
        """As if the machine had lost its power, but for the disk: no checkpoint, no goodbye to clients."""
        self._run("pg_ctl", "stop", "-D", self._data, "-m", "immediate", "-w")

    def destroy(self) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop_hard()
        shutil.rmtree(self._home)

    def log(self) -> str:
        return (self._data / "server.log").read_text(errors="replace")

    def _run(self, program: str, *words: str | Path) -> None:
        account = self._account
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
