"""SECURITY.md names what is tried and the tests that try it: every one of them is there, under that name."""

from __future__ import annotations

import re

LINK = re.compile(r"\[([^\]]+)\]\((tests/[^)]+\.py)\)")
TABLE = "| What is tried | What holds | Tests |"


def rows(text: str) -> list[list[str]]:
    after = text.partition(TABLE)[2].splitlines()[2:]
    lines = after[: next((place for place, line in enumerate(after) if not line.startswith("|")), len(after))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def missing(text: str, house) -> list[str]:
    """The tests that the table names, and that are not there."""
    found = []
    for sentence, place in LINK.findall(text):
        path = house.root / place
        name = f"def test_{sentence.replace(' ', '_')}("
        if not path.is_file() or name not in path.read_text(encoding="utf-8"):
            found.append(f"{place}: {name}")
    return found


def test_every_test_that_the_security_page_names_is_there(house):
    page = (house.root / "SECURITY.md").read_text(encoding="utf-8")

    assert missing(page, house) == []
    assert len(LINK.findall(page)) > 40


def test_every_row_says_what_holds_and_names_a_test(house):
    table = rows((house.root / "SECURITY.md").read_text(encoding="utf-8"))

    assert len(table) >= 20
    assert [row for row in table if len(row) != 3 or not row[1] or not LINK.search(row[2])] == []


def test_the_search_would_miss_what_is_not_there(house):
    assert missing("[nobody wrote this](tests/house/test_security_page.py)", house)
    assert missing("[x](tests/house/test_nothing.py)", house)
