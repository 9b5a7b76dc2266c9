"""Put the measured figures of benchmarks/results/latest.md into README.md, between its bench marks.

Without a file of figures the region says that nothing was measured. `--check` changes nothing and fails when
the two differ.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURES = "benchmarks/results/latest.md"
START, END = "<!-- bench:start -->", "<!-- bench:end -->"
LEFT_TO_THE_FILE = "**The same as ratios**"
"""README shows the goals and the peers; from here on the file of figures is for the curious."""


def region(figures: str | None) -> str:
    """What stands between the marks."""
    if figures is None:
        return f"Not measured yet: `make bench` writes {FIGURES} and the table here."
    shown = figures.split(LEFT_TO_THE_FILE)[0].strip()
    return f"{shown}\n\nMore, unflattering rows included: [{FIGURES}]({FIGURES})."


def filled(readme: str, figures: str | None) -> str:
    """README with the region written anew."""
    if readme.count(START) != 1 or readme.count(END) != 1:
        raise ValueError(f"README.md needs one {START} and one {END} after it.")
    before, rest = readme.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{region(figures)}\n{END}{after}"


def main() -> int:
    """Fill the region, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if README.md shows other figures")
    options = parser.parse_args()
    readme, latest = ROOT / "README.md", ROOT / FIGURES
    text = readme.read_text(encoding="utf-8")
    fresh = filled(text, latest.read_text(encoding="utf-8") if latest.exists() else None)
    if fresh == text:
        return 0
    if options.check:
        print(
            "README.md shows other figures than were measured. Run scripts/readme_bench.py.", file=sys.stderr
        )
        return 1
    readme.write_text(fresh, encoding="utf-8")
    print("README.md shows the new figures.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
