"""One job system under test: its database, its processes, and how its own tables are read."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psycopg

from environments import HERE, python_of
from reliability.fleet import Fleet
from reliability.records import Effects, Row
from reliability.stores import Stores
from servers import die_with_parent

DRIVE = HERE / "reliability" / "drive.py"
SYSTEMS = ["rota", "pgqueuer", "procrastinate", "chancy", "arq"]


class Failed(Exception):
    """This figure of this system has no result; the message says why in one line."""


class Cannot(Exception):
    """The system has nothing of the kind; the message says what."""


class System:
    """A fresh database, an effects file, and processes that end with the measure."""

    def __init__(self, name: str, profile: str, stores: Stores, seed: int) -> None:
        self.name, self.profile, self.stores = name, profile, stores
        self.chance = random.Random(f"{seed}-{name}-{profile}")
        self.python = python_of(name)
        self.home = stores.directory / f"{name}-{profile}-{time.monotonic_ns()}"
        self.home.mkdir()
        self.home.chmod(0o777)
        self.effects = Effects(self.home / "effects")
        self.effects.path.touch()
        self.effects.path.chmod(0o666)
        self.log = self.home / "log"
        self.url, self.worker_url, self.direct_url = "memory://", None, None
        self.facts = self.drive("facts")
        self.server = stores.redis if self.facts["JOBS"] is None else stores.postgres
        self.numbers: set[int] = set()
        self._ids: dict[str, int] = {}
        self._fleets: list[Fleet] = []
        self._others: list[subprocess.Popen] = []
        self.renew()

    def renew(self) -> None:
        """Empty tables; nothing of it may run."""
        self.url = self.server.fresh()
        self._ids.clear()
        self.drive("setup")

    @property
    def on_redis(self) -> bool:
        return self.facts["JOBS"] is None

    @property
    def version(self) -> str:
        return self.facts["version"]

    # -- processes ----------------------------------------------------------------------------------------------------
    def environment(self, url: str, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ROTA_", "PG", "DATABASE_URL"))}
        direct = {"BENCH_DIRECT_URL": self.direct_url} if self.direct_url else {}
        return (
            kept
            | {
                "BENCH_URL": url,
                "BENCH_PROFILE": self.profile,
                "PYTHONPATH": str(HERE),
                "PYTHONUNBUFFERED": "1",
            }
            | direct
            | more
        )

    def command(self, *words: object) -> list[str]:
        return [str(self.python), str(DRIVE), self.name, *map(str, words)]

    def drive(self, *words: object, jobs: object = None, url: str | None = None, limit: float = 120) -> dict:
        """Run one action to its end; its answer."""
        return self.answer(self.beside(*words, jobs=jobs, url=url), limit)

    def beside(
        self, *words: object, jobs: object = None, url: str | None = None, **more: str
    ) -> subprocess.Popen:
        """The same without waiting."""
        process = subprocess.Popen(
            self.command(*words),
            env=self.environment(url or self.url, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.home / f"stderr-{time.monotonic_ns()}").open("w+"),
            text=True,
            cwd=self.home,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
        process.words = words
        process.stdin.write(json.dumps(jobs))
        process.stdin.close()
        process.stdin = None
        return process

    def answer(self, process: subprocess.Popen, limit: float = 120) -> dict:
        try:
            out, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Failed(f"{process.words[0]} took longer than {limit:.0f} s") from None
        if process.returncode:
            raise Failed(f"{process.words[0]} failed: {self.last_words()}")
        lines = [x for x in out.splitlines() if x.startswith("{")]
        return json.loads(lines[-1]) if lines else {}

    def last_words(self) -> str:
        text = "".join(p.read_text(errors="replace") for p in sorted(self.home.glob("stderr-*"))[-1:])
        lines = [x.strip() for x in text.splitlines() if x.strip()]
        return lines[-1][:300] if lines else "no message"

    def fleet(self, size: int, slots: int) -> Fleet:
        """That many workers, replaced where they end; with the rescue that the documents advise, where it is tuned."""
        fleet = Fleet(size, lambda: self._worker(slots))
        self._fleets.append(fleet)
        if self.profile == "tuned" and self.facts["rescue"] and not self._others:
            self._others.append(self._spawn("rescue"))
        return fleet

    def _worker(self, slots: int) -> subprocess.Popen:
        return self._spawn("worker", slots)

    def _spawn(self, *words: object) -> subprocess.Popen:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.command(*words),
                env=self.environment(self.worker_url or self.url),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )

    def close(self) -> None:
        for fleet in self._fleets:
            fleet.end()
        for process in self._others:
            process.kill()
            process.wait()

    # -- jobs -----------------------------------------------------------------------------------------------------------
    def jobs(self, count: int, s: float = 0.0, how: str = "", first: int = 1) -> list[dict]:
        """Job payloads with numbers of their own."""
        made = [
            {"n": n, "s": s, "file": str(self.effects.path), "how": how} for n in range(first, first + count)
        ]
        self.numbers |= {job["n"] for job in made}
        return made

    def enqueue(self, jobs: list[dict]) -> None:
        self._ids |= {str(k): v for k, v in (self.drive("enqueue", jobs=jobs).get("ids") or {}).items()}

    def rows(self) -> list[Row]:
        """Every job in its own tables."""
        if self.on_redis:
            return self._redis_rows()
        with psycopg.connect(self.url, autocommit=True) as c:
            if self.facts["NUMBERS"]:
                self._ids |= {str(i): n for i, n in c.execute(self.facts["NUMBERS"]).fetchall()}
            found = [Row(*row) for row in c.execute(self.facts["JOBS"]).fetchall()]
        return [row._replace(n=self._ids.get(row.id)) for row in found] if self.facts["BY_ID"] else found

    def _redis_rows(self) -> list[Row]:
        ask = self.server.client
        found = []
        for name in ask.zrange("arq:queue", 0, -1):
            state = "running" if ask.exists(b"arq:in-progress:" + name) else "waiting"
            found.append((name, state, int(ask.get(b"arq:retry:" + name) or 0)))
        for key in ask.scan_iter("arq:result:*", count=1000):
            if data := ask.get(key):
                told = _Plain(io.BytesIO(data)).load()
                found.append((key[len("arq:result:") :], "done" if told["s"] else "failed", told["t"]))
        return [
            Row(
                int(text) if (text := name.decode().removeprefix("key-")).isdigit() else None,
                state,
                tries,
                name.decode(),
            )
            for name, state, tries in found
        ]

    def open_rows(self) -> list[Row]:
        return [row for row in self.rows() if row.state in ("waiting", "running")]

    # -- waiting --------------------------------------------------------------------------------------------------------
    def wait_for(self, what: Callable[[], object], limit: float, every: float = 0.05) -> bool:
        """Whether it came true in time."""
        end = time.monotonic() + limit
        while not what():
            if time.monotonic() > end:
                return False
            time.sleep(every)
        return True

    def must(self, what: Callable[[], object], limit: float, words: str) -> None:
        if not self.wait_for(what, limit):
            raise Failed(f"{words} within {limit:.0f} s; {self.tail()}")

    def tail(self) -> str:
        lines = (
            [x.strip() for x in self.log.read_text(errors="replace").splitlines() if x.strip()]
            if self.log.exists()
            else []
        )
        return f"its last words: {lines[-1][:200]}" if lines else "it said nothing"

    def started(self, numbers: Iterable[int]) -> bool:
        return set(numbers) <= set(self.effects.started())

    def drain(self, limit: float) -> float:
        """Wait until nothing is unfinished in its tables; the seconds that took, at most `limit`."""
        begin = time.monotonic()
        self.wait_for(lambda: not self.open_rows(), limit, every=1.0)
        return min(limit, time.monotonic() - begin)


class _Plain(pickle.Unpickler):
    """arq's results, without its classes: an exception is just an exception here."""

    def find_class(self, module: str, name: str) -> type:
        return type(name, (Exception,), {})
