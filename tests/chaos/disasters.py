"""Many faults at once: several hands, each of which does one harm after another, all by chance of one seed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import psycopg

from chaos.cluster import Cluster
from chaos.proxy import Proxy
from chaos.stage import Stage

THROW_OUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'rota' AND pid <> pg_backend_pid()
"""
ROWS = "SELECT id FROM rota.jobs ORDER BY random() LIMIT 10"


class Disasters:
    """Does harm to the workers, the server and the network between them; the timeline is the nemesis's."""

    def __init__(self, run: Stage, server: Cluster, proxy: Proxy, lease: float) -> None:
        self._run, self._server, self._proxy, self._lease = run, server, proxy, lease
        self._nemesis, self._dice = run.nemesis, run.nemesis.dice
        self._network, self._power = threading.Lock(), threading.Lock()
        self.done: Counter[str] = Counter()
        self.menu: dict[Callable[[], None], int] = {
            self._nemesis.kill_a_worker: 4,
            self._nemesis.terminate_a_worker: 2,
            self.freeze: 2,
            self.cut_a_backend: 4,
            self.throw_everybody_out: 1,
            self.cancel_statements: 3,
            self.lock_rows: 3,
            self.swallow: 2,
            self.slow_down: 3,
            self.silence_a_listener: 2,
            self.lose_a_server_process: 1,
            self.stop_the_server: 1,
        }
        """Each harm, and how often it comes in comparison."""
        if run.supervised:
            self.menu[self.kill_a_child] = 4

    def begin(self, hands: int, every: float) -> None:
        """Let so many hands do something about every so many seconds, until the nemesis stops."""
        self._proxy.rule = self._nemesis.cut_commits(0.01, "rota.")
        for _ in range(hands):
            self._nemesis.every(every, self.something)

    def something(self) -> None:
        [harm] = self._dice.choices(list(self.menu), weights=list(self.menu.values()))
        try:
            harm()
            self.done[harm.__name__] += 1
        except psycopg.OperationalError as error:
            self._nemesis.note(f"{harm.__name__} found no server: {str(error).splitlines()[0][:60]}")

    def kill_a_child(self) -> None:
        fleet = self._run.fleet
        children = sorted(child for pid in fleet.living() for child in fleet.children(pid))
        if children and fleet.kill_child(child := self._dice.choice(children)):
            self._nemesis.note(f"killed child {child}")

    def freeze(self) -> None:
        living = self._run.fleet.living()
        if living:
            self._nemesis.freeze_a_worker(
                self._dice.choice(living), self._lease * self._dice.uniform(0.3, 1.5)
            )

    def cut_a_backend(self) -> None:
        self._nemesis.cut_backends(self._server.url)()

    def cancel_statements(self) -> None:
        self._nemesis.cancel_statements(self._server.url)()

    def throw_everybody_out(self) -> None:
        with psycopg.connect(self._server.url, autocommit=True) as ours:
            ours.execute(THROW_OUT)
        self._nemesis.note("threw every connection out")

    def lock_rows(self) -> None:
        with psycopg.connect(self._server.url) as ours:
            found = ours.execute(ROWS).fetchall()
            ours.execute("SET lock_timeout = '200ms'")
            for (job,) in found:
                ours.execute("SELECT 1 FROM rota.jobs WHERE id = %s FOR UPDATE", [job])
            self._nemesis.note(f"locked {len(found)} rows for a moment")
            time.sleep(self._dice.uniform(0.0, 0.5))

    def swallow(self) -> None:
        with self._network, self._run.outage("the network swallows everything"), self._proxy.vanished():
            time.sleep(self._dice.uniform(0.2, self._lease))

    def slow_down(self) -> None:
        with self._network, self._run.outage("the network is slow"):
            longest = self._dice.uniform(0.05, 1.0)
            self._proxy.slow = lambda: self._dice.uniform(0.0, longest)
            self._proxy.drip = self._dice.choice([0, 0, 11])
            time.sleep(self._dice.uniform(0.5, 2.0))
            self._proxy.slow, self._proxy.drip = (lambda: 0.0), 0

    def silence_a_listener(self) -> None:
        if (count := self._proxy.silence("LISTEN rota")) > 0:
            self._nemesis.note(f"{count} listeners are half-open now")

    def lose_a_server_process(self) -> None:
        with self._power, self._run.outage("the server lost a process"):
            self._nemesis.kill_a_backend(self._server)
            time.sleep(0.5)
            self._server.start_if_stopped()

    def stop_the_server(self) -> None:
        with self._power, self._run.outage("the server is stopped"):
            self._nemesis.stop_server(self._server, down=2.0)
