"""docs/lifecycle.md is drawn from the rules. `REGENERATE=1 pytest tests/core/test_lifecycle_page.py` redraws it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rota._core.job import State
from rota._core.moves import MOVES, diagram

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lifecycle.md"
BEGIN, END = "<!-- drawn: {name} -->", "<!-- end: {name} -->"


def table() -> str:
    rows = ["| from | to | verb | who | meaning |", "|---|---|---|---|---|"]
    for move in MOVES:
        origin = move.origin.value if move.origin else "(new)"
        rows.append(f"| {origin} | {move.target.value} | {move.verb} | {move.who} | {move.meaning} |")
    return "\n".join(rows)


def drawn(page: str) -> str:
    """The page with its drawn parts as the rules are now."""
    for name, content in (("diagram", f"```mermaid\n{diagram()}\n```"), ("moves", table())):
        begin, end = BEGIN.format(name=name), END.format(name=name)
        assert page.count(begin) == page.count(end) == 1, f"docs/lifecycle.md lost its place for the {name}"
        before, rest = page.split(begin)
        page = f"{before}{begin}\n{content}\n{end}{rest.split(end)[1]}"
    return page


def test_the_page_shows_the_moves_as_they_are():
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("REGENERATE"):
        PAGE.write_text(drawn(page), encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")

    assert page == drawn(page), "run REGENERATE=1 pytest tests/core/test_lifecycle_page.py"


def test_the_page_explains_every_state_and_every_label():
    page = PAGE.read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))

    assert {state.value for state in State} <= explained
    assert {"scheduled", "retrying", "snoozed", "parked", "cancelling"} <= explained
