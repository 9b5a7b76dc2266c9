"""Files stay short enough to be read whole; sizes.toml names the exceptions, and only shrinks."""

from __future__ import annotations

import tomllib

LIMIT = 400


def test_no_python_file_outgrows_the_limit_or_its_exception(house):
    allowed = tomllib.loads((house.root / "tests/house/sizes.toml").read_text())["allowed"]
    lines = {name: text.count("\n") for name, text in house.texts(".py")}
    too_long = [
        f"{name} has {count} lines (at most {limit}). Split it: one duty a module."
        for name, count in lines.items()
        if count > (limit := allowed.get(name, {}).get("lines", LIMIT))
    ]

    assert not too_long, "\n".join(too_long)


def test_the_list_of_long_files_only_shrinks(house):
    allowed = tomllib.loads((house.root / "tests/house/sizes.toml").read_text())["allowed"]
    lines = {name: text.count("\n") for name, text in house.texts(".py")}
    stale = [
        f"sizes.toml allows {name} {entry['lines']} lines, it has {lines.get(name, 0)}: lower or remove it."
        for name, entry in allowed.items()
        if lines.get(name, 0) < entry["lines"] or lines[name] <= LIMIT or not entry["why"].strip()
    ]

    assert not stale, "\n".join(stale)
