"""Break Rota one line at a time, in copies, and demand that a named test notices: `make mutants`.

Every mutant that survives is a promise that no test keeps. First all named tests
run once on an unbroken copy, where they must pass.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from mutants_of import ALL
from trial import ROOT, Tree, Verdict, tried, troubles

if TYPE_CHECKING:
    from mutant import Mutant


def main() -> int:
    """0: all are dead; 1: some live; 2: the tests do not even pass without a mutant."""
    parser = argparse.ArgumentParser(
        prog="make mutants", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument(
        "-k", metavar="WORDS", default="", help="only mutants in whose name, file or test this stands"
    )
    parser.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1), help="how many at a time")
    parser.add_argument("--list", action="store_true", help="only say which mutants there are")
    options = parser.parse_args()
    chosen = [mutant for mutant in ALL if _fits(mutant, options.k)]
    if options.list or not chosen:
        print(
            "\n".join(f"{mutant.name}  ({mutant.file})" for mutant in chosen)
            or f"no mutant has {options.k!r} in it"
        )
        return 0 if chosen else 2
    with tempfile.TemporaryDirectory(prefix="rota-mutants-") as home:
        return hunt(chosen, Path(home).resolve(), options.jobs)


def hunt(mutants: Sequence[Mutant], home: Path, jobs: int) -> int:
    began = time.monotonic()
    clean = Tree.copied(ROOT, home / "clean")
    tests = sorted({mutant.test for mutant in mutants})
    with ThreadPoolExecutor(jobs) as pool:
        parts = [part for part in _parts(tests, jobs) if part]
        records = [record for found in pool.map(clean.run, parts) for record in found]
        if found := troubles(tests, records):
            print(
                "the named tests must pass before anything is broken, but:",
                *found,
                sep="\n\n",
                file=sys.stderr,
            )
            return 2
        print(
            f"{len(tests)} tests pass on the unbroken copy ({time.monotonic() - began:.0f} s).\n", flush=True
        )
        trials = [
            pool.submit(tried, clean, mutant, home / f"mutant-{number}")
            for number, mutant in enumerate(mutants)
        ]
        verdicts = []
        try:
            for trial in as_completed(trials):
                verdicts.append(trial.result())
                print(_line(verdicts[-1]), flush=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # one Ctrl-C is enough
            raise
    return _summary(verdicts, time.monotonic() - began)


def _fits(mutant: Mutant, words: str) -> bool:
    return words.lower() in f"{mutant.name} {mutant.file} {mutant.test}".lower()


def _parts(tests: Sequence[str], jobs: int) -> list[list[str]]:
    """One part for each job: whole files, the longest first, so that all take about as long."""
    files: dict[str, list[str]] = {}
    for test in tests:
        files.setdefault(test.partition("::")[0], []).append(test)
    parts: list[list[str]] = [[] for _ in range(jobs)]
    for mine in sorted(files.values(), key=len, reverse=True):
        min(parts, key=len).extend(mine)
    return parts


def _line(verdict: Verdict) -> str:
    word = "killed" if verdict.killed else "ALIVE "
    return f"{word} {verdict.seconds:5.1f} s  {verdict.mutant.name}\n{'':16}{verdict.why}"


def _summary(verdicts: Sequence[Verdict], seconds: float) -> int:
    alive = [verdict for verdict in verdicts if not verdict.killed]
    print(f"\n{len(verdicts) - len(alive)} of {len(verdicts)} mutants killed in {seconds:.0f} s.")
    for verdict in alive:
        mutant = verdict.mutant
        print(
            f"\n{mutant.name!r} lives: {verdict.why}\n  src/rota/{mutant.file}\n  - {mutant.old.strip()}\n"
            f"  + {mutant.new.strip() or '(nothing)'}\n"
            "  Write the test that notices it, and name it in scripts/mutants.",
            file=sys.stderr,
        )
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
