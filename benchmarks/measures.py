"""What is measured. Each measure starts with an empty database or keyspace and returns its figures as a dict."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from peer import Failed, Peer
from servers import tree_cpu

SLOTS = 100  # handlers running at once, wherever a measure does not say otherwise
PAIRED = (
    "rota",
    "before",
    "raw",
    "pgqueuer",
)  # those the goals compare: repeated, and measured in everything


@dataclass(frozen=True)
class Sizes:
    """What does not depend on the peer."""

    scale: float = 1.0
    finished: int = 1_000_000
    scheduled: int = 1_000_000
    churn: int = 200_000
    idle_s: float = 10.0
    rounds: int = 5


QUICK = Sizes(scale=0.4, finished=200_000, scheduled=200_000, churn=80_000, idle_s=6.0, rounds=4)


def one(peer: Peer, sizes: Sizes) -> dict:
    peer.fresh()
    r = peer.drive("one", peer.sizes["one"])
    return {"rate": r["n"] / r["answer"]}


def concurrent(peer: Peer, sizes: Sizes) -> dict:
    peer.fresh()
    r = peer.drive("concurrent", peer.sizes["concurrent"])
    return {"rate": r["n"] / r["answer"]}


def bulk(peer: Peer, sizes: Sizes) -> dict:
    peer.fresh()
    r = peer.drive("bulk", peer.sizes["bulk"])
    return {"rate": r["n"] / r["answer"], "jobs": r["n"]}


def drain100(peer: Peer, sizes: Sizes) -> dict:
    peer.fresh()
    return peer.drain(peer.sizes["drain100"], SLOTS)


def small(peer: Peer, sizes: Sizes) -> dict:
    """The same with a backlog that is gone in a second or two: kind to peers that slow down beside a long one."""
    peer.fresh()
    return peer.drain(int(20_000 * sizes.scale), SLOTS)


def drain8(peer: Peer, sizes: Sizes) -> dict:
    peer.fresh()
    return peer.drain(peer.sizes["drain8"], 8)


def procs2(peer: Peer, sizes: Sizes) -> dict:
    peer.fresh()
    return peer.drain(peer.sizes["drain100"], SLOTS, workers=2)


def latency(peer: Peer, sizes: Sizes) -> dict:
    """From the start of the enqueue call to the start of the handler, with an idle worker."""
    peer.fresh()
    processes = peer.start(SLOTS)
    try:
        peer.warm_up(processes)
        n = peer.sizes["pace"]
        peer.drive("pace", n)
        end = time.monotonic() + 20
        while peer.timed.stat().st_size < (n + 1) * 8 and time.monotonic() < end:
            time.sleep(0.1)
        delays = peer.delays(skip=1)
        if len(delays) < n:
            raise Failed(f"only {len(delays)} of {n} jobs started within 20 s")
        return quantiles(delays)
    finally:
        peer.stop(processes)


def idle(peer: Peer, sizes: Sizes) -> dict:
    peer.fresh()
    peer.server.log_statements()
    processes = peer.start(SLOTS)
    try:
        peer.warm_up(processes)
        time.sleep(2)
        worker, server = cpu_of(processes), peer.server.cpu()
        asked, t = peer.server.commands(), time.monotonic()
        time.sleep(sizes.idle_s)
        took = time.monotonic() - t
        worker, server = cpu_of(processes) - worker, peer.server.cpu() - server
        peer.alive(processes)
        return {
            "worker_cpu": 100 * worker / took,
            "server_cpu": 100 * server / took,
            "queries": (peer.server.commands() - asked) / took,
            "rss": peer.rss(processes)["largest"],
        }
    finally:
        peer.stop(processes)


def memory(peer: Peer, sizes: Sizes) -> dict:
    """One worker process drains round after round; its size after each, when it is quiet again."""
    peer.fresh()
    n, after = peer.sizes["memory"], []
    processes = peer.start(SLOTS)
    try:
        peer.warm_up(processes)
        before = peer.rss(processes)["largest"]
        for _ in range(sizes.rounds):
            start = peer.done()
            peer.remember()
            sender = peer.beside("bulk", n)
            try:
                peer.watch(processes, start, n, limit=60)
            finally:
                finish(sender)
            time.sleep(0.5)
            after.append(peer.rss(processes)["largest"])
        return {"before": before, "after": after, "growth": after[-1] / after[0], "jobs": n * sizes.rounds}
    finally:
        peer.stop(processes)


def f0(peer: Peer, sizes: Sizes) -> dict:
    peer.fresh()
    return peer.drain(peer.sizes["f"], SLOTS)


def f2(peer: Peer, sizes: Sizes) -> dict:
    """Beside finished and scheduled rows. The filled database is kept as a template for the repeats."""
    if peer.name in getattr(peer.server, "templates", ()):
        peer.fresh(setup=False)
        peer.url = peer.server.fresh_from_template(peer.name)
    else:
        peer.fresh()
        fill = {"{done}": str(sizes.finished), "{scheduled}": str(sizes.scheduled)}
        with psycopg.connect(peer.url, autocommit=True) as c:
            c.execute("set statement_timeout = '240s'")
            for statement in peer.facts["BACKLOG"]:
                for word, number in fill.items():
                    statement = statement.replace(word, number)
                c.execute(statement)
            c.execute("vacuum analyze")
        if peer.name in PAIRED:
            peer.server.keep_as_template(peer.name)
    return peer.drain(peer.sizes["f"], SLOTS, limit=patience(peer))


def f3(peer: Peer, sizes: Sizes) -> dict:
    """Under a snapshot that was taken before many jobs came and went; vacuum cannot remove what they left."""
    peer.fresh()
    with psycopg.connect(peer.url) as holder, psycopg.connect(peer.url, autocommit=True) as c:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from pg_class")
        c.execute("set statement_timeout = '240s'")
        if peer.facts["CHURN"]:
            for statement in peer.facts["CHURN"]:
                c.execute(statement.replace("{n}", str(sizes.churn)))
        else:
            peer.drain(sizes.churn, SLOTS, limit=120)  # the same, by really running them
        c.execute("vacuum analyze")
        return peer.drain(peer.sizes["f"], SLOTS, limit=patience(peer))


def urgent(peer: Peer, sizes: Sizes) -> dict:
    """A backlog over 5 queues and 3 priorities; while it drains, an urgent job arrives every 50 ms."""
    peer.fresh()
    n = peer.sizes["drain100"]
    peer.remember()
    peer.drive("mixed", n)
    sender = peer.beside("urgent", n)
    time.sleep(2)  # it must be ready and waiting when the drain begins
    processes = peer.start(SLOTS)
    try:
        r = peer.watch(processes, 0, n, limit=60)
        sent = finish(sender)
        end = time.monotonic() + 10
        while len(delays := peer.delays()) < sent and time.monotonic() < end:
            time.sleep(0.05)
        return {**quantiles(delays), "sent": sent, "started": len(delays), "rate": r["rate"]}
    finally:
        peer.stop(processes)
        finish(sender)


def patience(peer: Peer) -> float:
    """Seconds until a drain is cut: its rate so far is then what is reported."""
    return 60 if peer.name in PAIRED else 30


def finish(sender: subprocess.Popen) -> int:
    """Wait for a process that ran beside; its answer, 0 when it had to be stopped."""
    if sender.stdout.closed:
        return 0
    try:
        text, _ = sender.communicate(timeout=20)
        return json.loads(text.splitlines()[-1])["answer"] if text.strip() else 0
    except subprocess.TimeoutExpired:
        sender.kill()
        sender.communicate()
        return 0


def cpu_of(processes: list[subprocess.Popen]) -> float:
    return sum(tree_cpu(p.pid) for p in processes)


def quantiles(delays: list[float]) -> dict:
    if not delays:
        raise Failed("no timed job started")
    last = len(delays) - 1
    return {
        "p50": statistics.median(delays),
        "p95": delays[round(last * 0.95)],
        "p99": delays[round(last * 0.99)],
        "max": delays[-1],
        "n": len(delays),
    }


@dataclass(frozen=True)
class Measure:
    title: str
    run: Callable[[Peer, Sizes], dict]
    only: tuple[str, ...] | None = None  # peers it is for; None means all
    late: bool = False  # needs BACKLOG in the adapter, and is dear: the slow peers last
    once: bool = False  # does not vary enough to be repeated

    def suits(self, peer: Peer) -> bool:
        if peer.name == "raw400":  # stands in the drain table only
            return self.run is drain100
        if self.run is urgent:
            return "urgent" in peer.can
        return (self.only is None or peer.name in self.only) and not (self.late and not peer.facts["BACKLOG"])


MEASURES = {
    "one": Measure("single enqueue, one by one", one),
    "concurrent": Measure("single enqueue, 100 concurrent callers", concurrent),
    "bulk": Measure("bulk enqueue", bulk),
    "drain100": Measure("drain, 100 slots", drain100),
    "small": Measure("drain, 100 slots, 20,000 jobs", small, only=PAIRED),
    "drain8": Measure("drain, 8 slots", drain8),
    "procs2": Measure("drain, 2 worker processes of 100 slots", procs2, only=PAIRED),
    "latency": Measure("pick-up latency, idle worker", latency),
    "idle": Measure("idle worker", idle, once=True),
    "memory": Measure("memory over several drains", memory, only=PAIRED, once=True),
    "urgent": Measure("urgent jobs during a drain of 5 queues x 3 priorities", urgent),
    "f0": Measure("drain, clean table", f0, late=True),
    "f3": Measure("drain after many jobs under a held snapshot", f3, late=True),
    "f2": Measure("drain beside finished and scheduled rows", f2, late=True),
}
