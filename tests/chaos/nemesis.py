"""The nemesis: does harm on a seeded schedule, and keeps a timeline of it."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg

from chaos.proxy import Commit, Cut

if TYPE_CHECKING:
    from chaos.cluster import Cluster
    from chaos.fleet import Fleet

BACKENDS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'rota' AND pid <> pg_backend_pid() ORDER BY pid
"""


BUSY = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'rota' AND state = 'active' AND pid <> pg_backend_pid()
"""


class Nemesis:
    """Each harm is a method; `every` repeats one in the background. All chance comes from the seed."""

    def __init__(self, seed: int, fleet: Fleet) -> None:
        self.dice = random.Random(seed)
        self.seed = seed
        self.timeline: list[tuple[float, str]] = []
        self._fleet = fleet
        self._began = time.monotonic()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def every(self, seconds: float, harm: Callable[[], None]) -> None:
        """Do this harm about so often, at irregular moments, until `stop`."""

        def repeat() -> None:
            try:
                while not self._over.wait(seconds * self.dice.uniform(0.5, 1.5)):
                    harm()
            except BaseException as error:
                self._failures.append(error)

        thread = threading.Thread(target=repeat, name="chaos-nemesis")
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """No more harm; wounds that are being made are finished."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]

    @property
    def gentle(self) -> bool:
        """Whether it did no more than ask workers to stop."""
        return all(what.startswith("asked worker") for _, what in self.timeline)

    def told(self) -> str:
        return "\n".join(f"{at:8.2f} s  {what}" for at, what in self.timeline)

    def kill_a_worker(self) -> None:
        living = self._fleet.living()
        if living:
            pid = self.dice.choice(living)
            if self._fleet.signal(pid, signal.SIGKILL):
                self.note(f"killed worker {pid}")

    def terminate_a_worker(self) -> None:
        living = self._fleet.living()
        if living:
            pid = self.dice.choice(living)
            if self._fleet.signal(pid, signal.SIGTERM):
                self.note(f"asked worker {pid} to stop")

    def freeze_a_worker(self, pid: int, seconds: float) -> None:
        self.note(f"froze worker {pid} for {seconds:.1f} s")
        self._fleet.freeze(pid, seconds)

    def cut_backends(self, url: str) -> Callable[[], None]:
        """A harm: end a random backend of our workers and producers, from inside the server."""

        def cut() -> None:
            with psycopg.connect(url, autocommit=True) as ours:
                pids = [pid for (pid,) in ours.execute(BACKENDS)]
                if pids:
                    pid = self.dice.choice(pids)
                    ours.execute("SELECT pg_terminate_backend(%s)", [pid])
                    self.note(f"terminated backend {pid}")

        return cut

    def cancel_statements(self, url: str) -> Callable[[], None]:
        """A harm: have the server give up whatever our workers and producers ask of it now."""

        def cancel() -> None:
            with psycopg.connect(url, autocommit=True) as ours:
                pids = [pid for (pid,) in ours.execute(BUSY)]
                for pid in pids:
                    ours.execute("SELECT pg_cancel_backend(%s)", [pid])
                if pids:
                    self.note(f"cancelled the statements of {len(pids)} backends")

        return cancel

    def kill_a_backend(self, cluster: Cluster) -> None:
        """Kill one of the server's processes: it throws out all clients and recovers as after a crash."""
        with psycopg.connect(cluster.url, autocommit=True) as ours:
            pids = [pid for (pid,) in ours.execute(BACKENDS)]
        if pids:
            pid = self.dice.choice(pids)
            self.note(f"killed backend {pid}, and the server recovers")
            cluster.kill(pid)

    def stop_server(self, cluster: Cluster, down: float = 3.0) -> None:
        """Stop the server hard and start it again after at most `down` seconds."""
        pause = self.dice.uniform(0.0, down)
        self.note(f"stopped the server hard, for {pause:.1f} s")
        cluster.stop_hard()
        time.sleep(pause)
        cluster.start()
        self.note("the server is back")

    def cut_commits(self, chance: float, *about: str) -> Callable[[Commit], Cut | None]:
        """A rule for the proxy: cut this share of the commits whose statement has one of these words."""

        def rule(commit: Commit) -> Cut | None:
            if not any(word in commit.sql for word in about) or self.dice.random() >= chance:
                return None
            cut = self.dice.choice(list(Cut))
            self.note(f"cut {cut.value} commit {commit.number}: {' '.join(commit.sql.split())[:60]}")
            return cut

        return rule

    def note(self, what: str) -> None:
        self.timeline.append((time.monotonic() - self._began, what))
