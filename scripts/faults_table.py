"""Put two tables into docs/reliability.md: the faults of tests/chaos/faults.py, and what runs of mixed chaos came to.

The runs are those that `--record tests/chaos/mixed_runs.jsonl` has written down (docs/reliability.md says how).
`--check` changes nothing and fails when the page shows anything else.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from chaos import ledger  # noqa: E402 - it is found by the line above
from chaos.fault import EVERY, LONG, SMALL, Fault  # noqa: E402
from chaos.faults import FAULTS  # noqa: E402

PAGE = ROOT / "docs" / "reliability.md"
RUNS = ROOT / "tests" / "chaos" / "mixed_runs.jsonl"
TIERS = {EVERY: "every run", SMALL: "small", LONG: "long"}
HARMS = {
    "kill_a_worker": "workers killed",
    "kill_a_child": "children of supervisors killed",
    "die_before_a_settle": "workers dead between a job's end and its record",
    "terminate_a_worker": "workers asked to stop",
    "freeze": "workers frozen for 0.3 to 1.5 leases",
    "cut_around_a_commit": "connections cut before, during or after a commit",
    "cut_a_backend": "server connections terminated",
    "throw_everybody_out": "times all connections terminated",
    "cancel_statements": "times all running statements cancelled",
    "lock_rows": "times rows locked by a stranger",
    "swallow": "times a network that swallows everything",
    "slow_down": "times a slow or dripping network",
    "silence_a_listener": "times half-open listeners",
    "lose_a_server_process": "server crashes (a process killed, recovery)",
    "stop_the_server": "servers stopped hard and started again",
}


def faults() -> str:
    """One row for each fault, with its tests by tier."""
    rows = ["| | What goes wrong | What holds | Shown by |", "|---|---|---|---|"]
    rows += [f"| F{fault.number} | {fault.what} | {fault.holds} | {_tests(fault)} |" for fault in FAULTS]
    return "\n".join(rows)


def _tests(fault: Fault) -> str:
    shown = []
    for tier, named in groupby(fault.tests, key=lambda one: one[0]):
        links = "; ".join(_link(test) for _, test in named)
        shown.append(f"*{TIERS[tier]}*: {links}")
    return "<br>".join(shown)


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../{file})"


def runs(entries: list[ledger.Entry]) -> str:
    """One row for each seed, then all harm that was done, by kind."""
    if not entries:
        return "No run is written down yet."
    seeds = sorted({one.seed for one in entries})
    found = {(one.seed, one.supervised): one for one in entries}
    rows = [
        "| seed | four workers: jobs | starts | harms | violations | supervised: jobs | starts | harms | violations |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for seed in seeds:
        cells = [_cells(found.get((seed, supervised))) for supervised in (False, True)]
        rows.append(f"| {seed} | {' | '.join(cells)} |")
    harms: Counter[str] = Counter()
    for one in entries:
        harms.update(one.harms)
    violations = sum(one.violations or 0 for one in entries)
    unjudged = sum(one.violations is None for one in entries)
    days = sorted({one.day for one in entries})
    summary = (
        f"{len(seeds)} seeds, {len(entries)} runs with {min(one.seconds for one in entries):g} s of harm each "
        f"({' to '.join(dict.fromkeys((days[0], days[-1])))}): {sum(one.jobs for one in entries):,} jobs, "
        f"{sum(one.starts for one in entries):,} starts, {sum(harms.values()):,} harms, "
        f"**{violations} violations**" + (f", {unjudged} runs without a verdict." if unjudged else ".")
    )
    listed = [f"- {harms[name]:,} {words}" for name, words in HARMS.items() if harms[name]]
    unnamed = sorted(harms.keys() - HARMS.keys())
    if unnamed:
        raise ValueError(f"scripts/faults_table.py has no words for {', '.join(unnamed)}: add them to HARMS.")
    return "\n".join([summary, "", *rows, "", "What was done to them:", "", *listed])


def _cells(one: ledger.Entry | None) -> str:
    if one is None:
        return " | ".join("" for _ in range(4))
    judged = "no verdict" if one.violations is None else str(one.violations)
    return f"{one.jobs:,} | {one.starts:,} | {sum(one.harms.values()):,} | {judged}"


def filled(page: str, entries: list[ledger.Entry]) -> str:
    """The page with both tables written anew."""
    for name, content in (("faults", faults()), ("mixed", runs(entries))):
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if page.count(begin) != 1 or page.count(end) != 1:
            raise ValueError(f"docs/reliability.md needs one {begin} and one {end} after it.")
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{content}\n{end}{rest.split(end)[1]}"
    return page


def main() -> int:
    """Fill the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="fail if docs/reliability.md shows anything else"
    )
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    fresh = filled(page, ledger.recorded(RUNS))
    if fresh == page:
        return 0
    if options.check:
        print(
            "docs/reliability.md shows other faults or runs than there are. Run scripts/faults_table.py.",
            file=sys.stderr,
        )
        return 1
    PAGE.write_text(fresh, encoding="utf-8")
    print("docs/reliability.md is renewed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
