"""Rota beside its peers and beside the raw limit, on one PostgreSQL and one Redis, in one run. See README.md.

python benchmarks/run.py                    everything
python benchmarks/run.py --quick            rota, raw and pgqueuer with fewer jobs
python benchmarks/run.py --peers rota,raw --measures drain100,f2 --repeat 3
python benchmarks/run.py --before v1.2.0 --peers rota    beside an earlier Rota, in the same run
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from environments import HERE, InstallError, enter_runner

CORE = ["rota", "raw", "pgqueuer"]
ALL = [
    "rota",
    "raw",
    "raw400",
    "pgqueuer",
    "procrastinate",
    "chancy",
    "awa",
    "dramatiq_redis",
    "taskiq_redis",
    "huey_redis",
    "arq",
]


def options(argv: list[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--peers", help=f"comma-separated, of: {', '.join(ALL)}")
    p.add_argument("--measures", help="comma-separated; see README.md for their names")
    p.add_argument(
        "--repeat", type=int, help="runs of what the goals compare (default 2, quick 1); the others run once"
    )
    p.add_argument("--quick", action="store_true", help=f"{', '.join(CORE)} only, fewer jobs")
    p.add_argument(
        "--postgres", metavar="BIN_DIR", help="another PostgreSQL, e.g. /usr/lib/postgresql/15/bin"
    )
    p.add_argument("--before", metavar="REF", help="measure Rota as it was at this commit, too")
    p.add_argument("--out", help="where to write, without ending: .json and .md are added")
    p.add_argument("--into", metavar="JSON", help="add what is measured now to the figures of an earlier run")
    p.add_argument("--minutes", type=float, help="start nothing new after so many (default 22, quick 4.5)")
    o = p.parse_args(argv)
    whole = not (o.peers or o.measures or o.quick or o.postgres or o.before)
    o.out = o.into.removesuffix(".json") if o.into else o.out
    o.out = Path(o.out) if o.out else HERE / "results" / ("latest" if whole else "partial")
    o.peers = o.peers.split(",") if o.peers else list(CORE if o.quick else ALL)
    if o.before:
        os.environ["BENCH_BEFORE"] = o.before  # the adapter's environment is made by it
        o.peers.insert(1, "before")
    o.repeat = o.repeat or (1 if o.quick else 2)
    o.minutes = o.minutes or (4.5 if o.quick else 22)
    return o


def plan(peers, names, repeat, measures, paired):
    """What to run, in order: [(peer, measure name)].

    First everything once, peers taking turns, so that noise falls on all alike; then the drains that need a
    filled database, each round in the other order, so that none is always first; then the repeats; last the slow
    peers' filled databases, which may be cut.
    """
    early = [n for n in names if not measures[n].late]
    late = [n for n in names if measures[n].late]
    ours = [p for p in peers if p.name in paired]
    steps = [(p, n) for n in early for p in peers]
    steps += [(p, n) for i in range(repeat) for n in late for p in (ours if i % 2 == 0 else ours[::-1])]
    again = [p for p in peers if p.name in (*paired, "raw400")]
    steps += [
        (p, n)
        for i in range(repeat - 1)
        for n in early
        if not measures[n].once
        for p in (again[::-1] if i % 2 == 0 else again)
    ]
    steps += [(p, n) for p in peers if p not in ours for n in late]
    return [(p, n) for p, n in steps if measures[n].suits(p)]


def load(o, servers, results, peer_class, scale):
    """Make each peer ready; one that cannot be is named with its reason and left out."""
    peers = []
    for name in o.peers:
        try:
            peer = peer_class(name, servers, scale)
        except Exception as error:
            results["peers"][name] = {"failed": f"{error}"}
            print(f"  {name}: {error}", flush=True)
            continue
        results["peers"][name] = {
            "versions": peer.versions,
            "config": peer.config,
            "backend": peer.backend,
            "sizes": peer.sizes,
        }
        peers.append(peer)
    return peers


def quiet(limit: float = 2) -> float:
    """Wait a little until other programs use little CPU; what they use, in percent."""
    import psutil

    end = time.monotonic() + limit
    while (busy := psutil.cpu_percent(0.3)) > 15 and time.monotonic() < end:
        pass
    return busy


def take(measure, peer, sizes) -> dict:
    """One run of one measure; whatever goes wrong becomes its result."""
    busy = quiet()
    t = time.monotonic()
    try:
        result = measure.run(peer, sizes)
    except Exception as error:
        result = {
            "failed": f"{type(error).__name__}: {error}" if type(error).__name__ != "Failed" else f"{error}"
        }
    result["busy_before"] = busy
    result["took_s"] = round(time.monotonic() - t, 1)
    return result


def merged(earlier: dict, now: dict) -> dict:
    """An earlier run's figures and those of now beside them: no reading is left out; the table says which came later."""
    for peer, measured in now["runs"].items():
        for name, readings in measured.items():
            earlier["runs"].setdefault(peer, {}).setdefault(name, []).extend(readings)
        earlier["peers"].setdefault(peer, now["peers"][peer])
        names = ", ".join(measured)
        earlier.setdefault("later", []).append(f"{peer} {names}: measured again at {now['started']}")
    return earlier


def brief(result: dict) -> str:
    show = {k: v for k, v in result.items() if k not in ("busy_before", "n")}
    return "  ".join(f"{k}={v:,.1f}" if isinstance(v, float) else f"{k}={v}" for k, v in show.items())


def main() -> int:
    o = options()
    enter_runner()  # from here on psutil, psycopg and redis are there

    from measures import MEASURES, PAIRED, QUICK, Sizes
    from peer import Peer
    from report import write
    from servers import Servers

    names = o.measures.split(",") if o.measures else list(MEASURES)
    if unknown := [n for n in names if n not in MEASURES]:
        sys.exit(f"unknown measure {unknown[0]!r}: known are {', '.join(MEASURES)}")
    if unknown := [p for p in o.peers if p not in (*ALL, "before")]:
        sys.exit(f"unknown peer {unknown[0]!r}: known are {', '.join(ALL)}")
    for sig in (signal.SIGTERM, signal.SIGHUP):  # a stop is a stop with all its cleaning up
        signal.signal(sig, lambda number, _: sys.exit(128 + number))
    sizes = QUICK if o.quick else Sizes()
    results = {
        "started": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "quick": o.quick,
        "before": o.before,
        "repeat": o.repeat,
        "sizes": vars(sizes),
        "peers": {},
        "runs": {},
        "not_run": [],
    }
    began = time.monotonic()
    servers = Servers(o.postgres)
    try:
        print("Setting up", flush=True)
        peers = load(o, servers, results, Peer, sizes.scale)
        results["machine"] = servers.machine()
        set_up = time.monotonic()
        steps = plan(peers, names, o.repeat, MEASURES, PAIRED)
        for i, (peer, name) in enumerate(steps, 1):
            if time.monotonic() - set_up > o.minutes * 60:
                results["not_run"] = [f"{p.name} {n}" for p, n in steps[i - 1 :]]
                break
            result = take(MEASURES[name], peer, sizes)
            results["runs"].setdefault(peer.name, {}).setdefault(name, []).append(result)
            print(
                f"{time.strftime('%H:%M:%S')} {i}/{len(steps)} {peer.name} {name}: {brief(result)}",
                flush=True,
            )
    except KeyboardInterrupt:
        print("stopped: what was measured so far is written", flush=True)
        results["not_run"] = ["the rest: stopped by hand"]
    finally:
        servers.stop()
    results["took_s"] = round(time.monotonic() - began)
    if o.into:
        results = merged(json.loads(Path(o.into).read_text()), results)
    text = write(results, o.out)
    print("\n" + text)
    print(f"Written: {o.out}.json, {o.out}.md")
    return 0 if results["runs"] else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InstallError as error:
        sys.exit(f"cannot set up the runner: {error}")
