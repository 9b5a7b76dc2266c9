"""Which requirement is proven by which test: reads docs/requirements.md and the marks in tests/, prints the coverage.

`--write` renews the last column of the tables in docs/requirements.md; `--check` fails when it is out of date.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "requirements.md"
TESTS = ROOT / "tests"
ROW = re.compile(r"^\| (?P<number>[DWLJV]?\d+) \| (?P<text>.+?) \|(?P<proof>.*)\|$")


@dataclass(frozen=True)
class Proof:
    """One test function and the numbers it carries."""

    path: Path
    name: str
    numbers: tuple[str, ...]
    """As written, a parametrised test's included."""
    heaviest: int
    """Most requirement marks that any single run of it carries (scenario marks are not counted)."""


class BadMark(Exception):
    """A mark that cannot be read, with its place."""


def listed(page: str) -> dict[str, str]:
    """Every requirement and scenario of the page: number to text, in order."""
    found: dict[str, str] = {}
    for line in page.splitlines():
        if row := ROW.match(line):
            if row["number"] in found:
                raise BadMark(f"docs/requirements.md lists {row['number']} twice.")
            found[row["number"]] = row["text"]
    return found


def proofs(tests: Path = TESTS) -> list[Proof]:
    """Every marked test below `tests`, by path and name."""
    found = [proof for path in sorted(tests.rglob("test_*.py")) for proof in proofs_in(path)]
    return sorted(found, key=lambda proof: (str(proof.path), proof.name))


def proofs_in(path: Path) -> list[Proof]:
    """The marked tests of one file. A mark anywhere but on a test function is an error: it would count for nothing."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    found, seen = [], 0
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = [call for decorator in node.decorator_list for call in _marks(decorator)]
            seen += len(marks)
            if marks and not node.name.startswith("test_"):
                raise BadMark(
                    f"{path}:{node.lineno}: {node.name} carries a requirement mark but is not a test."
                )
            if marks:
                numbers = tuple(dict.fromkeys(number for call in marks for number in _numbers(call, path)))
                found.append(Proof(path, node.name, numbers, _heaviest(node, path)))
    if seen != len(_marks(tree)):
        raise BadMark(
            f"{path}: put req and scenario marks on the test functions themselves, not on classes or modules."
        )
    return found


def _marks(tree: ast.AST) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"req", "scenario"}
        and ast.unparse(node.func.value) == "pytest.mark"
    ]


def _numbers(call: ast.Call, path: Path) -> list[str]:
    values = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if call.keywords or not values or len(values) != len(call.args):
        raise BadMark(f'{path}:{call.lineno}: write the number itself, as in @pytest.mark.req("W14").')
    return [str(value) for value in values]


def _heaviest(node: ast.FunctionDef | ast.AsyncFunctionDef, path: Path) -> int:
    """Marks on the function count for each of its runs, marks inside pytest.param(...) for that run only."""
    params = [
        call
        for decorator in node.decorator_list
        for call in ast.walk(decorator)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.param"
    ]
    inside = [_marks(param) for param in params]
    nested = {id(call) for calls in inside for call in calls}
    direct = [
        call for decorator in node.decorator_list for call in _marks(decorator) if id(call) not in nested
    ]
    return _weight(direct, path) + max((_weight(calls, path) for calls in inside), default=0)


def _weight(calls: list[ast.Call], path: Path) -> int:
    return sum(
        len(_numbers(call, path))
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "req"
    )


def renewed(page: str, found: list[Proof]) -> str:
    """The page with its last column written anew."""
    by_number: dict[str, list[Proof]] = {}
    for proof in found:
        for number in proof.numbers:
            by_number.setdefault(number, []).append(proof)
    lines = []
    for line in page.splitlines():
        row = ROW.match(line)
        if row is None:
            lines.append(line)
        else:
            proven = "<br>".join(_link(proof) for proof in by_number.get(row["number"], []))
            lines.append(f"| {row['number']} | {row['text']} | {proven} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def _link(proof: Proof) -> str:
    sentence = proof.name.removeprefix("test_").replace("_", " ")
    return f"[{sentence}](../{proof.path.relative_to(ROOT).as_posix()})"


def report(numbers: dict[str, str], found: list[Proof]) -> str:
    """What is proven by which tests, and what is left, in words for a terminal."""
    lines = []
    for number, text in numbers.items():
        tests = [proof for proof in found if number in proof.numbers]
        lines.append(f"{'+' if tests else '-'} {number:>4}  {text}")
        lines += [f"          {proof.path.relative_to(ROOT)}::{proof.name}" for proof in tests]
    proven = {number for proof in found for number in proof.numbers}
    requirements = [number for number in numbers if not number.isdigit()]
    scenarios = [number for number in numbers if number.isdigit()]
    lines.append("")
    for letter in dict.fromkeys(number[0] for number in requirements):
        mine = [number for number in requirements if number[0] == letter]
        lines.append(f"{letter}: {len(proven & set(mine))} of {len(mine)} proven")
    lines.append(f"all: {len(proven & set(requirements))} of {len(requirements)} requirements proven")
    lines.append(f"scenarios: {len(proven & set(scenarios))} of {len(scenarios)} told")
    return "\n".join(lines)


def main() -> int:
    """Print the coverage; with --write or --check, look after the page as well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the table in docs/requirements.md")
    parser.add_argument("--check", action="store_true", help="fail if the table is out of date")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    try:
        numbers, found = listed(page), proofs()
    except BadMark as trouble:
        print(trouble, file=sys.stderr)
        return 1
    print(report(numbers, found))
    fresh = renewed(page, found)
    if options.write and fresh != page:
        PAGE.write_text(fresh, encoding="utf-8")
        print("docs/requirements.md is renewed.")
    if options.check and fresh != page:
        print("docs/requirements.md is out of date. Run `make requirements`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
