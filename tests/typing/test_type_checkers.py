"""A wrong argument is an error in mypy and in pyright, and a right one is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BIN = Path(sys.executable).parent


def mypy(file: str, cache: Path) -> dict[int, str]:
    command = [BIN / "mypy", "--strict", "--output=json", f"--cache-dir={cache}", HERE / file]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode in (0, 1), found.stdout + found.stderr
    problems = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
    return {
        p["line"]: p["message"] for p in problems if p["severity"] == "error" and p["file"].endswith(file)
    }


def pyright(file: str, _cache: Path) -> dict[int, str]:
    command = [BIN / "pyright", "--outputjson", f"--pythonpath={sys.executable}", HERE / file]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode in (0, 1), found.stdout + found.stderr
    problems = json.loads(found.stdout)["generalDiagnostics"]
    return {p["range"]["start"]["line"] + 1: p["message"] for p in problems if p["severity"] == "error"}


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright], ids=["mypy", "pyright"])


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.slow
@CHECKERS
def test_what_a_user_writes_is_understood_with_its_types(checker, cache):
    assert checker("right_calls.py", cache) == {}


@pytest.mark.slow
@CHECKERS
def test_every_mistake_is_found_and_nothing_else(checker, cache):
    lines = (HERE / "wrong_calls.py").read_text(encoding="utf-8").splitlines()
    mistakes = {number for number, line in enumerate(lines, start=1) if line.endswith("# wrong")}

    found = checker("wrong_calls.py", cache)

    assert len(mistakes) > 20
    assert set(found) == mistakes, found
