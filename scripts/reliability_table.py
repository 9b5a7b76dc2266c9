"""Write what benchmarks/results/reliability.json holds into docs/reliability.md, between its marks for peers.

The file of results is all that is read: figures in rows, systems in columns, at their defaults and tuned. `--check`
changes nothing and fails when the two differ.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = "benchmarks/results/reliability.json"
PAGE = "docs/reliability.md"
BEGIN, END = "<!-- peers:begin -->", "<!-- peers:end -->"
SYSTEMS = ["rota", "pgqueuer", "procrastinate", "chancy", "arq"]
PROFILES = ["defaults", "tuned"]
HEADING = "# Reliability\n"


def region(found: dict[str, Any] | None) -> str:
    """What stands between the marks."""
    if found is None:
        return f"Not measured yet: `make reliability` writes {RESULTS} and the table here."
    cells = {(r["figure"], r["profile"], r["system"]): r for r in found["results"]}
    parts = [_table(found["figures"], cells), _misses(found), _settings(found), _repeat(found)]
    return "\n\n".join(part for part in parts if part)


def _table(figures: dict[str, Any], cells: dict[tuple[str, str, str], dict[str, Any]]) -> str:
    lines = [
        f"| | What is measured | Goal | At | {' | '.join(SYSTEMS)} |",
        f"|---|---|---|---|{'---|' * len(SYSTEMS)}",
    ]
    for name, about in figures.items():
        head = f"{name} | {about['title']} | {about['goal']}"
        for profile in PROFILES:
            row = [cells.get((name, profile, system)) for system in SYSTEMS]
            if any(row):
                shown = " | ".join(_cell(result) for result in row)
                lines.append(f"| {head} | {profile} | {shown} |")
                head = " | | "  # said once for both profiles
    return "\n".join(lines)


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return "not measured"
    text = str(result["shown"]).replace("|", "/")
    return f"**{text}**" if result.get("holds") is False else text


def _misses(found: dict[str, Any]) -> str:
    bad = [f"{r['figure']} ({r['profile']})" for r in found["results"] if r.get("holds") is False]
    if not bad:
        return "Every goal that was measured holds for Rota."
    return f"Bold: goals that do not hold for Rota: {', '.join(bad)}."


def _settings(found: dict[str, Any]) -> str:
    said: dict[str, dict[str, str]] = defaultdict(dict)
    versions: dict[str, set[str]] = defaultdict(set)
    for result in found["results"]:
        if result["version"]:
            said[result["system"]][result["profile"]] = result["settings"]
            versions[result["system"]].add(result["version"])
    lines = [
        f"- **{system} {', '.join(sorted(versions[system]))}**. "
        + " ".join(f"{p.capitalize()}: {said[system][p]}." for p in PROFILES if p in said[system])
        for system in SYSTEMS
        if system in said
    ]
    return "\n".join(lines)


def _repeat(found: dict[str, Any]) -> str:
    sizes: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    taken: dict[str, set[str]] = defaultdict(set)
    for result in found["results"]:
        words = ", ".join(f"{key} {value}" for key, value in result["sizes"].items())
        sizes[f"{words}; seed {result['seed']}"][result["figure"]].add(result["system"])
        taken[result["figure"]].add(result["system"])
    servers = ", ".join(f"{name} {version}" for name, version in found.get("servers", {}).items())
    when = sorted({result["measured"] for result in found["results"]})
    lines = [
        f"- {', '.join(_whose(name, names[name], taken) for name in sorted(names, key=_number))}: {words}."
        for words, names in sorted(sizes.items(), key=lambda item: min(map(_number, item[1])))
    ]
    head = (
        f"Measured {' to '.join(dict.fromkeys([when[0], when[-1]]))} on {servers}, all on one machine. Repeat it: "
        '`make reliability`, or a part: `make reliability ARGS="--only G3,G5 --systems rota,chancy"`; '
        "`--full` takes the sizes of the plan and hours; Rota was put through those. Sizes and seeds:"
    )
    return "\n".join([head, "", *lines])


def _whose(figure: str, systems: set[str], taken: dict[str, set[str]]) -> str:
    """A figure, and whose sizes they are where not all had the same."""
    if systems == taken[figure]:
        return figure
    rest = systems == taken[figure] - {"rota"}
    return f"{figure} ({'all but rota' if rest else ', '.join(sorted(systems))})"


def _number(name: str) -> int:
    return int(name[1:])


def filled(page: str, found: dict[str, Any] | None) -> str:
    """The page with its region written anew."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise ValueError(f"{PAGE} needs one {BEGIN} and one {END} after it.")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{region(found)}\n{END}{after}"


def main() -> int:
    """Fill the region, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"fail if {PAGE} shows other figures")
    options = parser.parse_args()
    page, results = ROOT / PAGE, ROOT / RESULTS
    text = page.read_text(encoding="utf-8") if page.exists() else HEADING
    if BEGIN not in text:
        text = f"{text.rstrip()}\n\n{BEGIN}\n{END}\n"
    found = json.loads(results.read_text(encoding="utf-8")) if results.exists() else None
    fresh = filled(text, found)
    if page.exists() and fresh == page.read_text(encoding="utf-8"):
        return 0
    if options.check:
        print(
            f"{PAGE} shows other figures than were measured. Run scripts/reliability_table.py.",
            file=sys.stderr,
        )
        return 1
    page.write_text(fresh, encoding="utf-8")
    print(f"{PAGE} shows the new figures.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
