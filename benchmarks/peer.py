"""One job system under measurement: its processes, its files, and how a drain is timed."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import time
from pathlib import Path

import psutil
import psycopg

from environments import HERE, python_of, requirements
from servers import Servers, die_with_parent, tree

DRIVER = HERE / "driver.py"
FIRST_JOB_LIMIT = 60  # seconds until a started worker must have run something
DEFAULT_SIZES = {
    "one": 2_000,
    "concurrent": 5_000,
    "bulk": 50_000,
    "pace": 250,
    "drain100": 20_000,
    "drain8": 10_000,
    "f": 20_000,
    "memory": 10_000,
}


class Failed(Exception):
    """This measure of this peer has no result; the message says why in one line."""


class Peer:
    def __init__(self, name: str, servers: Servers, scale: float = 1.0) -> None:
        self.name, self.servers = name, servers
        self.python = python_of(name)
        self.hits = servers.directory / f"hits-{name}"
        self.timed = Path(f"{self.hits}.timed")
        self.log_path = servers.directory / f"worker-{name}.log"
        self.url = "none"
        facts = self.drive("info", limit=60)
        self.facts = facts
        self.backend = "postgres" if isinstance(facts["PENDING"], str) else "redis"
        self.server = servers.of(self.backend)
        self.config = facts["CONFIG"] or ""
        self.can = set(facts["can"])
        sizes = {**DEFAULT_SIZES, **(facts["SIZES"] or {})}
        self.sizes = {k: max(100, int(v * scale)) for k, v in sizes.items()}
        self.versions = self._versions(facts["versions"])
        self.mark: object = 0

    def _versions(self, installed: dict[str, str]) -> dict[str, str]:
        """Of all that is installed, what peers.txt names (and Rota with its driver)."""
        normal = {k.lower().replace("_", "-"): v for k, v in installed.items()}
        asked = requirements().get(
            self.name, ["rota", "psycopg"] if self.name in ("rota", "before") else ["asyncpg"]
        )
        names = [a.split("[")[0].split("~")[0].split("=")[0].split(">")[0] for a in asked]
        return {n: normal[n.lower()] for n in names if n.lower() in normal}

    # -- processes ------------------------------------------------------------------------------------------------
    def _environ(self) -> dict[str, str]:
        path = os.path.dirname(self.python) + os.pathsep + os.environ["PATH"]
        return dict(
            os.environ,
            BENCH_URL=self.url,
            BENCH_HITS=str(self.hits),
            PATH=path,
            PYTHONUNBUFFERED="1",
            PYTHONPATH=os.pathsep.join([str(HERE), str(HERE / "adapters")]),
        )

    def _command(self, *args: object) -> list[str]:
        return [str(self.python), str(DRIVER), self.name, *map(str, args)]

    def drive(self, *args: object, limit: float = 120) -> dict:
        """Run one action of the adapter to its end; its answer."""
        try:
            done = subprocess.run(
                self._command(*args),
                env=self._environ(),
                capture_output=True,
                text=True,
                timeout=limit,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"{args[0]} took longer than {limit:.0f} s") from None
        if done.returncode:
            raise Failed(f"{args[0]} failed: {last_line(done.stderr)}")
        lines = [x for x in done.stdout.splitlines() if x.startswith("{")]
        return json.loads(lines[-1]) if lines else {}

    def beside(self, *args: object) -> subprocess.Popen:
        """The same without waiting: it runs beside a drain."""
        return subprocess.Popen(
            self._command(*args),
            env=self._environ(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )

    def start(self, slots: int, workers: int = 1) -> list[subprocess.Popen]:
        slots = self.facts["SLOTS"] or slots
        with self.log_path.open("ab") as log:
            return [
                subprocess.Popen(
                    self._command("worker", slots),
                    env=self._environ(),
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    preexec_fn=die_with_parent(signal.SIGKILL),
                )
                for _ in range(workers)
            ]

    def stop(self, processes: list[subprocess.Popen]) -> None:
        for process in processes:  # each is its own session, so its group is exactly what we started
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def alive(self, processes: list[subprocess.Popen]) -> None:
        for process in processes:
            if process.poll() is not None:
                text = self.log_path.read_text(errors="replace")
                raise Failed(f"the worker ended by itself (code {process.returncode}): {last_line(text)}")

    def rss(self, processes: list[subprocess.Popen]) -> dict[str, float]:
        """MB now: of the largest process, and of all together."""
        sizes = []
        for process in processes:
            for p in tree(process.pid):
                try:
                    sizes.append(p.memory_info().rss / 1e6)
                except psutil.NoSuchProcess:
                    pass
        return {"largest": max(sizes, default=0.0), "all": sum(sizes)}

    # -- state ----------------------------------------------------------------------------------------------------
    def fresh(self, *, setup: bool = True) -> None:
        """An empty database or keyspace and empty files."""
        self.hits.write_bytes(b"")
        self.timed.write_bytes(b"")
        self.url = self.server.fresh()
        if setup:
            self.drive("setup")

    def done(self) -> int:
        return self.hits.stat().st_size

    def delays(self, skip: int = 0) -> list[float]:
        """Milliseconds from the call to the handler, of all timed jobs, sorted."""
        raw = self.timed.read_bytes()
        return sorted(1000 * x for (x,) in list(struct.iter_unpack("d", raw[: len(raw) // 8 * 8]))[skip:])

    def remember(self) -> None:
        """Note where the next jobs begin, so that counting them does not read a million others."""
        if self.facts["MARK"]:
            with psycopg.connect(self.url, autocommit=True) as c:
                self.mark = c.execute(self.facts["MARK"]).fetchone()[0]

    def pending(self) -> int:
        """Jobs sent since remember() and not yet durably finished."""
        ask = self.facts["PENDING"]
        if self.backend == "redis":
            run = self.server.client.execute_command
            return sum(int(run(*(x.split() if isinstance(x, str) else x)) or 0) for x in ask)
        with psycopg.connect(self.url, autocommit=True) as c:
            return c.execute(ask.replace("{mark}", str(self.mark))).fetchone()[0]

    def warm_up(self, processes: list[subprocess.Popen]) -> None:
        """Send one job through, so that the worker is known to be up and its connections open."""
        self.drive("pace", 1)
        end = time.monotonic() + FIRST_JOB_LIMIT
        while not self.timed.stat().st_size:
            self.alive(processes)
            if time.monotonic() > end:
                raise Failed(f"no job started in {FIRST_JOB_LIMIT} s")
            time.sleep(0.05)
        time.sleep(2)

    # -- the drain ------------------------------------------------------------------------------------------------
    def drain(self, n: int, slots: int, *, workers: int = 1, send: str = "bulk", limit: float = 60) -> dict:
        """Jobs/s from the first handler start to the moment the last job was durably marked done."""
        self.remember()
        self.drive(send, n)
        start = self.done()
        processes = self.start(slots, workers)
        try:
            return self.watch(processes, start, n, limit)
        finally:
            self.stop(processes)

    def watch(self, processes: list[subprocess.Popen], start: int, n: int, limit: float) -> dict:
        launched = time.perf_counter()
        while self.done() == start:
            time.sleep(0.002)
            self.alive(processes)
            if time.perf_counter() - launched > FIRST_JOB_LIMIT:
                raise Failed(f"no job started in {FIRST_JOB_LIMIT} s")
        t0, sampled, rss = time.perf_counter(), 0.0, {"largest": 0.0, "all": 0.0}
        while (seen := self.done() - start) < n:
            time.sleep(0.005)
            now = time.perf_counter()
            if now - sampled > 0.5:
                self.alive(processes)
                rss, sampled = bigger(rss, self.rss(processes)), now
            if now - t0 > limit:
                return {"rate": seen / (now - t0), "jobs": n, "stopped_at": seen, "rss": rss["largest"]}
        while True:
            asked = time.perf_counter()  # what a count finds done was done when it was asked
            if not self.pending():
                break
            if asked - t0 > limit:
                raise Failed(
                    f"{self.pending()} of {n} jobs ran but were never marked done within {limit:.0f} s"
                )
            time.sleep(0.002)
        rss = bigger(rss, self.rss(processes))
        again = self.done() - start - n
        return {
            "rate": n / (asked - t0),
            "jobs": n,
            "s": asked - t0,
            "rss": rss["largest"],
            "rss_all": rss["all"],
            **({"started_twice": again} if again > 0 else {}),
        }


def bigger(a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
    return {k: max(a[k], b[k]) for k in a}


def last_line(text: str) -> str:
    lines = [x.strip() for x in text.splitlines() if x.strip()]
    return lines[-1][:300] if lines else "no message"
