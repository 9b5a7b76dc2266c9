"""A run: workers, producers and a nemesis on one database, and the verdict at the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from chaos.checker import check, report
from chaos.effects import Effect, read_effects
from chaos.evidence import Evidence, Limits
from chaos.facts import Sampler, read_tables
from chaos.fleet import Fleet, environment
from chaos.journal import read_journals
from chaos.nemesis import Nemesis
from chaos.orders import Order

CONNECTIONS_A_WORKER = 25
CONNECTIONS_A_PRODUCER = 12


class Stage:
    """`url` is the straight way to the database; workers and producers may be sent through a proxy."""

    def __init__(
        self,
        url: str,
        home: Path,
        seed: int,
        *,
        workers: int = 2,
        slots: int = 8,
        lease: float = 15.0,
        beat: float = 5.0,
        through: str | None = None,
        reckless: bool = False,
        crowd: int | None = None,
    ) -> None:
        self.url, self.home = url, home
        self._through = through or url
        self._effects = home / "effects.log"
        self._workers = workers * (crowd or 1)
        settings = self.settings | {
            "ROTA_LEASE": str(lease),
            "ROTA_BEAT": str(beat),
            "CHAOS_SLOTS": str(slots),
        }
        if reckless:
            settings["CHAOS_RECKLESS"] = "1"
        if crowd:
            settings["CHAOS_CROWD"] = str(crowd)
        self.fleet = Fleet(workers, home, settings)
        self.nemesis = Nemesis(seed, self.fleet)
        self._sampler = Sampler(url, self.fleet.memory)
        self._producers: dict[str, subprocess.Popen[str]] = {}
        self._spawned = 0
        self._open = True
        self.evidence: Evidence | None = None

    def begin(self) -> None:
        """Start the workers and the sampler."""
        self._sampler.start()
        self.fleet.start()

    def produce(self, order: Order) -> None:
        """Start a producer beside everything else."""
        self._producers[order.name] = self.spawn("producer", order.name, order._asdict())

    def spawn(self, module: str, name: str, told: dict[str, Any]) -> subprocess.Popen[str]:
        """Start a process that enqueues and keeps a journal."""
        self._spawned += 1
        with (self.home / f"{name}.out").open("ab") as said, (self.home / f"{name}.err").open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", f"chaos.{module}", json.dumps(told)],
                cwd=self.home,
                env=environment(**self.settings, CHAOS_JOURNAL=str(self.home / f"{name}.journal")),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=errors,
                text=True,
            )

    def said(self, name: str) -> str:
        """What a spawned process answered."""
        return (self.home / f"{name}.out").read_text()

    def complained(self, name: str) -> str:
        """What a spawned process wrote besides: its log and its last error."""
        return (self.home / f"{name}.err").read_text()[-4000:]

    def produced(self, within: float = 120.0) -> None:
        """Wait until every producer is done, and well."""
        deadline = time.monotonic() + within
        for name, producer in self._producers.items():
            code = producer.wait(max(0.1, deadline - time.monotonic()))
            assert code == 0, f"producer {name} ended with {code}: {self.complained(name)}"

    def kill_producer(self, name: str) -> None:
        """End a producer by force in the middle of an enqueue: intended, and not yet acknowledged."""
        producer = self._producers.pop(name)
        while True:
            producer.send_signal(signal.SIGSTOP)
            if '"do": "intend"' in (self.home / f"{name}.journal").read_text().splitlines()[-1]:
                break
            producer.send_signal(signal.SIGCONT)
            time.sleep(0.002)
        producer.kill()
        producer.wait()
        self.nemesis.note(f"killed producer {name}")

    def drained(self, within: float) -> None:
        """Wait until no job waits or runs; what is left then is for the checker to name."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            deadline = time.monotonic() + within
            while time.monotonic() < deadline:
                row = connection.execute("SELECT count(*) FROM rota.jobs").fetchone()
                if row == (0,):
                    return
                time.sleep(0.1)

    def effects(self) -> list[Effect]:
        return read_effects(self._effects)

    def seen(self, wanted: Callable[[list[Effect]], bool], within: float) -> list[Effect]:
        """The effect log, once it shows what is wanted."""
        deadline = time.monotonic() + within
        while not wanted(found := self.effects()):
            assert time.monotonic() < deadline, (
                f"not seen within {within:g} s; {len(found)} effects. {self._told()}"
            )
            time.sleep(0.02)
        return found

    def verdict(self, *, within: float = 60.0, ends: tuple[str, ...] = ("completed",)) -> Evidence:
        """Let the wounds heal, stop everything, and compare the records. Raises with the story if they disagree."""
        self.nemesis.stop()
        self.produced()
        self.drained(within)
        orphans = self.fleet.orphans()
        self.close()
        assert self.evidence is None
        self.evidence = evidence = Evidence(
            read_journals(self.home.glob("*.journal")),
            self.effects(),
            read_tables(self.url),
            samples=self._samples,
            deaths=self.fleet.deaths,
            freezes=self.fleet.freezes,
            orphans=orphans + self.fleet.orphans(),
            ends=ends,
            limits=Limits(
                connections=self._workers * CONNECTIONS_A_WORKER + self._spawned * CONNECTIONS_A_PRODUCER
            ),
        )
        violations = check(evidence)
        assert not violations, f"{report(evidence, violations)}\n\n{self._told()}"
        return evidence

    def close(self) -> None:
        """Stop everything. Harmless when it was done before."""
        if not self._open:
            return
        self._open = False
        try:
            self.nemesis.stop()
        finally:
            for producer in self._producers.values():
                if producer.poll() is None:
                    producer.kill()
                    producer.wait()
            self.fleet.stop()
            self._samples = self._sampler.stop()

    @property
    def settings(self) -> dict[str, str]:
        return {"ROTA_URL": self._through, "CHAOS_EFFECTS": str(self._effects)}

    def _told(self) -> str:
        done = f"seed {self.nemesis.seed}; what was done:\n{self.nemesis.told()}"
        return f"{done}\n\nworkers said:\n{self.fleet.logs()[-4000:]}"
