"""docs/dead-letters.md is drawn from the rules. `REGENERATE=1 pytest tests/core/test_review_page.py` redraws it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rota._core.review import ACTIONS, REQUESTED, REVIEW_MOVES, SUCCESS, diagram

PAGE = Path(__file__).resolve().parents[2] / "docs" / "dead-letters.md"
BEGIN, END = "<!-- drawn: review -->", "<!-- end: review -->"


def drawn(page: str) -> str:
    """The page with its drawn part as the rules are now."""
    rows = ["| from | to | verb | who | meaning |", "|---|---|---|---|---|"]
    for move in REVIEW_MOVES:
        origin = move.origin.value if move.origin else "(died)"
        verb = move.verb.value if move.verb else "die"
        rows.append(f"| {origin} | {move.target.value} | {verb} | {move.who} | {move.meaning} |")
    content = f"```mermaid\n{diagram()}\n```\n\n" + "\n".join(rows)
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{content}\n{END}{rest.split(END)[1]}"


def test_the_page_shows_the_review_as_it_is():
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("REGENERATE"):
        PAGE.write_text(drawn(page), encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")

    assert page == drawn(page), "run REGENERATE=1 pytest tests/core/test_review_page.py"


def test_the_page_explains_every_action_of_the_audit():
    explained = set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8")))

    assert {REQUESTED, SUCCESS, *ACTIONS.values()} <= explained
