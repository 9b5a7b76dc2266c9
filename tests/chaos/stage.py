"""A run: workers, producers and a nemesis on one database, and the verdict at the end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from chaos.checker import Violation, check, report
from chaos.effects import Effect, read_effects
from chaos.evidence import Evidence, Limits, Outage
from chaos.facts import Sampler, read_tables
from chaos.fleet import Fleet, environment
from chaos.journal import Journal, read_journals
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
        more: Mapping[str, str] | None = None,
        each: Callable[[int], Mapping[str, str]] = lambda _: {},
        supervised: int = 0,
    ) -> None:
        """What workers are like and where they go.

        `supervised`: each is a `rota worker` with so many child processes. `more`
        is for the environment of all, `each` for that of the one at a place.
        """
        self.url, self.home = url, home
        self._through = through or url
        self._effects = home / "effects.log"
        self._workers = workers * (crowd or 1) * (1 + supervised)
        self._lease, self.supervised = lease, supervised
        self._outages: list[Outage] = []
        settings = self.settings | {
            "ROTA_LEASE": str(lease),
            "ROTA_BEAT": str(beat),
            "CHAOS_SLOTS": str(slots),
            **(more or {}),
        }
        if reckless:
            settings["CHAOS_RECKLESS"] = "1"
        if crowd:
            settings["CHAOS_CROWD"] = str(crowd)
        command = ("-m", "chaos.chaos_worker")
        if supervised:
            words = f"-m rota.cli worker chaos.tasks:app --lane general={slots} --processes {supervised}"
            command = tuple(words.split())
        self.fleet = Fleet(workers, home, settings, each, command, bool(supervised))
        self.nemesis = Nemesis(seed, self.fleet)
        self._sampler = Sampler(lambda: self.url, self.fleet.memory)
        self._producers: dict[str, subprocess.Popen[str]] = {}
        self._spawned = 0
        self._open = True
        self.evidence: Evidence | None = None
        self.violations: list[Violation] | None = None
        """What the verdict found; None: there is none yet."""

    def begin(self) -> None:
        """Start the workers and the sampler."""
        self._sampler.start()
        self.fleet.start()

    def produce(self, order: Order, **more: str) -> None:
        """Start a producer beside everything else; `more` is for its environment."""
        self._producers[order.name] = self.spawn("producer", order.name, order._asdict(), **more)

    def spawn(self, module: str, name: str, told: dict[str, Any], **more: str) -> subprocess.Popen[str]:
        """Start a process that enqueues and keeps a journal."""
        self._spawned += 1
        with (self.home / f"{name}.out").open("ab") as said, (self.home / f"{name}.err").open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", f"chaos.{module}", json.dumps(told)],
                cwd=self.home,
                env=environment(**self.settings, **more, CHAOS_JOURNAL=str(self.home / f"{name}.journal")),
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

    def enqueue(self, keys: Iterable[str], *, task: str = "work", **arguments: Any) -> None:
        """Enqueue from the test itself, straight by SQL and all in one commit, with a journal like every producer."""
        wanted = list(keys)
        journal, jobs = Journal(self.home / "test.journal"), dict[str, str]()
        with psycopg.connect(self.url, autocommit=True) as connection:
            self.until(
                lambda: connection.execute("SELECT 1 FROM rota.tasks WHERE name = %s", [task]).fetchone()
            )
            journal.intend(wanted)
            with connection.transaction():
                for key in wanted:
                    told = json.dumps({"key": key, **({"ms": 5} | arguments)})
                    row = connection.execute("SELECT rota.enqueue(%s, %s::jsonb)", [task, told]).fetchone()
                    assert row is not None
                    jobs[key] = str(row[0])
            journal.ack(jobs)
        journal.close()

    def until(self, true: Callable[[], Any], within: float = 30.0) -> None:
        """Wait for anything."""
        deadline = time.monotonic() + within
        while not true():
            assert time.monotonic() < deadline, f"not within {within:g} s. {self._told()}"
            time.sleep(0.01)

    def begun(self, key: str, within: float) -> float:
        """Wait for the first start of this job; the seconds from now until then."""
        asked = time.time()
        [start, *_] = [
            effect.start
            for effect in self.seen(lambda effects: any(e.key == key for e in effects), within)
            if effect.key == key
        ]
        return start - asked

    @contextmanager
    def outage(self, what: str) -> Iterator[None]:
        """A time in which workers cannot reach the store: jobs that are lost to it are explained by it."""
        begin = time.time()
        self.nemesis.note(f"{what}: begins")
        try:
            yield
        finally:
            self.nemesis.note(f"{what}: over")
            self._outages.append(Outage(begin, time.time()))

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

    def verdict(
        self, *, within: float = 60.0, ends: tuple[str, ...] = ("completed",), notifications: float = 0.25
    ) -> Evidence:
        """Let the wounds heal, stop everything, and compare the records. Raises with the story if they disagree."""
        self.nemesis.stop()
        self.produced()
        self.drained(within)
        orphans = self.fleet.orphans()
        self.close()
        evidence = self.gathered(ends=ends, notifications=notifications, orphans=orphans)
        self.violations = check(evidence)
        if self.violations:
            told = report(evidence, self.violations)
            pids = set(re.findall(r"\bpid (\d+)", told))
            raise AssertionError(f"{told}\n\n{self._told(pids)}")
        return evidence

    def gathered(
        self,
        *,
        ends: tuple[str, ...] = ("completed",),
        notifications: float = 0.25,
        orphans: Sequence[int] = (),
    ) -> Evidence:
        """All records, after the end; what they say is not judged."""
        assert self.evidence is None
        self.evidence = Evidence(
            read_journals(self.home.glob("*.journal")),
            self.effects(),
            read_tables(self.url),
            samples=self._samples,
            deaths=self.fleet.deaths,
            freezes=self.fleet.freezes,
            outages=self._outages,
            lease=self._lease,
            orphans=[*orphans, *self.fleet.orphans()],
            stubborn=self.fleet.stubborn,
            ends=ends,
            answered=self._through == self.url and self.nemesis.gentle,
            limits=Limits(
                connections=self._workers * CONNECTIONS_A_WORKER + self._spawned * CONNECTIONS_A_PRODUCER,
                notifications=notifications,
            ),
        )
        return self.evidence

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

    def _told(self, pids: set[str] | None = None) -> str:
        """The seed, what was done, and what workers logged: those with these process ids, or all."""
        again = f"seed {self.nemesis.seed} (again: add --seed {self.nemesis.seed})"
        done = f"{again}; what was done:\n{self.nemesis.told()}"
        logs = self.fleet.logs()
        if pids:
            theirs = [line for line in logs.splitlines(keepends=True) if pids & set(line.split()[:4])]
            logs = "".join(theirs) or logs
        return f"{done}\n\nworkers said:\n{logs[-6000:]}"
