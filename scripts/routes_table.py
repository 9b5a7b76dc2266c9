"""Put the table of all HTTP routes, with the role that each needs, into docs/api.md.

`--check` changes nothing and fails when the page shows anything else.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rota.web.api import table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
BEGIN, END = "<!-- routes -->", "<!-- end of routes -->"


def routes() -> str:
    """One row for each route, in the order in which they are served."""
    rows = ["| Route | Verb | Role | What it does |", "|---|---|---|---|"]
    for route in table():
        verb, role = route.permission
        words = (route.endpoint.__doc__ or "").strip().splitlines()[0]
        rows.append(
            f"| `{route.method} {route.path}` | `{verb}` | {role.value if role else 'anyone'} | {words} |"
        )
    return "\n".join(rows)


def page() -> str:
    """The page as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{routes()}\n{END}{after}"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true")
    wanted = page()
    if not arguments.parse_args().check:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") != wanted:
        print(
            "docs/api.md does not show the routes as they are. Run scripts/routes_table.py.", file=sys.stderr
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
