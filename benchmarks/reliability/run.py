"""Rota and four peers under the same faults, on one PostgreSQL and one Redis. See README.md, "Reliability".

python benchmarks/reliability/run.py                                            everything, in short runs
python benchmarks/reliability/run.py --only G1,G3 --systems rota,pgqueuer --quick
python benchmarks/reliability/run.py --full                                     the sizes of the plan: hours

Each figure that was measured replaces its former result in results/reliability.json; the others stay.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path[:1] = [str(BENCHMARKS), str(BENCHMARKS.parent / "tests")]  # chaos.proxy lives among the tests

from environments import HERE, InstallError, enter_runner

RESULTS = HERE / "results" / "reliability.json"


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", help="figures, comma-separated: G1,G3")
    p.add_argument("--systems", help="of: rota, pgqueuer, procrastinate, chancy, arq")
    p.add_argument("--profiles", help="defaults, tuned or both (as usual)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--full", action="store_true", help="the sizes of the plan; takes hours")
    p.add_argument(
        "--quick", action="store_true", help="only try whether it works; nothing is kept unless --out"
    )
    p.add_argument("--out", type=Path, help="another file of results")
    o = p.parse_args()
    o.how = "full" if o.full else "quick" if o.quick else "default"
    o.out = o.out or (None if o.quick else RESULTS)
    return o


def chosen(text: str | None, known: list[str], what: str) -> list[str]:
    names = text.split(",") if text else known
    if unknown := [n for n in names if n not in known]:
        sys.exit(f"unknown {what} {unknown[0]!r}: known are {', '.join(known)}")
    return names


def keep(path: Path, figures: dict, entries: list[dict], servers: dict) -> None:
    """Merge into the file; several runs may do so at once."""
    lock = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = json.loads(path.read_text()) if path.exists() else {"figures": {}, "results": []}
        where = {(e["figure"], e["system"], e["profile"]) for e in entries}
        rest = [e for e in known["results"] if (e["figure"], e["system"], e["profile"]) not in where]
        known["figures"] |= figures
        known["servers"] = known.get("servers", {}) | servers
        known["results"] = sorted(
            rest + entries, key=lambda e: (int(e["figure"][1:]), e["system"], e["profile"])
        )
        known["figures"] = dict(sorted(known["figures"].items(), key=lambda item: int(item[0][1:])))
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(known, indent=1) + "\n")
        fresh.replace(path)
    finally:
        os.close(lock)


def group(names: list[str], catalogue: dict) -> list[list[str]]:
    """Figures that one run gives together."""
    found: dict[object, list[str]] = {}
    for name in names:
        found.setdefault(catalogue[name].measure, []).append(name)
    return list(found.values())


def entry(figure, system, version, profile, seed, sizes, result, note) -> dict:
    made = {"figure": figure.name, "system": system, "version": version, "profile": profile, "settings": note}
    made |= {"seed": seed, "sizes": sizes, "measured": time.strftime("%Y-%m-%d", time.gmtime())}
    if "cannot" in result or "failed_because" in result:
        why = result.get("cannot") or result["failed_because"]
        made |= result | {"shown": f"cannot: {why}" if "cannot" in result else f"no figure: {why}"}
    else:
        made |= {"figures": result, "shown": figure.shown(result)}
    if system == "rota":
        made["holds"] = "figures" in made and figure.holds(profile, result)
    return made


def main() -> int:
    o = options()
    enter_runner()  # from here on psutil, psycopg and redis are there

    from reliability.catalogue import FIGURES
    from reliability.stores import Stores
    from reliability.system import SYSTEMS, Cannot, Failed, System

    names = chosen(o.only, list(FIGURES), "figure")
    systems = chosen(o.systems, SYSTEMS, "system")
    profiles = chosen(o.profiles, ["defaults", "tuned"], "profile")
    for sig in (signal.SIGTERM, signal.SIGHUP):  # a stop is a stop with all its cleaning up
        signal.signal(sig, lambda number, _: sys.exit(128 + number))
    stores = Stores()
    bad = 0
    try:
        for together in group(names, FIGURES):
            figure = FIGURES[together[0]]
            sizes = figure.sized(o.how)
            for name in systems:
                for profile in [p for p in profiles if p in figure.profiles]:
                    begin, system, version, note = time.monotonic(), None, "", ""
                    try:
                        if name in figure.cannot:
                            raise Cannot(figure.cannot[name])
                        system = System(name, profile, stores, o.seed)
                        result = figure.measure(system, sizes)
                    except Cannot as error:
                        result = {"cannot": f"{error}"}
                    except (Failed, InstallError) as error:
                        result = {"failed_because": f"{error}"}
                    finally:
                        if system is not None:
                            system.close()
                            version, note = system.version, system.facts["NOTES"][profile]
                            if os.environ.get("BENCH_KEEP_LOGS"):
                                _save_logs(system, f"{together[0]}-{name}-{profile}")
                    made = [
                        entry(FIGURES[f], name, version, profile, o.seed, sizes, result, note)
                        for f in together
                    ]
                    took = time.monotonic() - begin
                    for e in made:
                        print(
                            f"{e['figure']} {name} {profile}: {e['shown']}  [{took:.0f} s] {json.dumps(result)}",
                            flush=True,
                        )
                        bad += e.get("holds") is False
                    if o.out:
                        about = {f: {"title": FIGURES[f].title, "goal": FIGURES[f].goal} for f in together}
                        keep(o.out, about, made, stores.versions())
    finally:
        stores.stop()
    print(f"{bad} goals do not hold for Rota" if bad else "every goal measured here holds for Rota")
    return 0


def _save_logs(system, name: str) -> None:
    place = Path(os.environ["BENCH_KEEP_LOGS"])
    place.mkdir(parents=True, exist_ok=True)
    for source, ending in ((system.log, "log"), (system.effects.path, "effects")):
        if source.exists():
            (place / f"{name}.{ending}").write_bytes(source.read_bytes())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InstallError as error:
        sys.exit(f"cannot set up the runner: {error}")
