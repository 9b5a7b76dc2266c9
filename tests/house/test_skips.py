"""A skipped test proves nothing: each needs a line with its reason in skips.toml."""

from __future__ import annotations

import ast
import tomllib

EVASIONS = {
    "pytest.mark.skip",
    "pytest.mark.skipif",
    "pytest.mark.xfail",
    "pytest.skip",
    "pytest.xfail",
    "pytest.importorskip",
    "unittest.skip",
    "unittest.skipIf",
    "unittest.SkipTest",
}


def evasions(tree: ast.AST, scope: str = "") -> list[str]:
    """The function (or "module") around every skip, skipif, xfail and importorskip."""
    found = []
    for node in ast.iter_child_nodes(tree):
        inner = scope
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = scope or node.name
        if isinstance(node, ast.Attribute) and ast.unparse(node) in EVASIONS:
            found.append(inner or "module")
        found += evasions(node, inner)
    return found


def test_every_skip_is_listed_with_its_reason(house):
    allowed = tomllib.loads((house.root / "tests/house/skips.toml").read_text())["allowed"]
    found = {f"{name}::{place}" for name, tree in house.trees(under="tests") for place in evasions(tree)}
    found = {place for place in found if not place.startswith("tests/house/test_skips.py::")}

    unlisted, stale = sorted(found - allowed.keys()), sorted(allowed.keys() - found)

    assert not unlisted, "give these a line with a reason in skips.toml:\n" + "\n".join(unlisted)
    assert not stale, "remove these from skips.toml:\n" + "\n".join(stale)
    assert [place for place, reason in allowed.items() if len(reason.split()) < 3] == []


def test_the_search_sees_marks_calls_and_modules():
    tree = ast.parse(
        "import pytest\n"
        "pytestmark = pytest.mark.skip(reason='x')\n"
        "@pytest.mark.xfail\n"
        "def test_a(): ...\n"
        "async def test_b():\n"
        "    pytest.skip('y')\n"
    )

    assert evasions(tree) == ["module", "test_a", "test_b"]
