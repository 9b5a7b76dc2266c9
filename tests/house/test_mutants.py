"""The mutants of `make mutants` still fit the code, and a mutant counts as dead only for a good reason."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from types import ModuleType

import pytest

RULE = "core/test_decide.py::test_the_last_attempt_that_fails_kills_the_job"


@pytest.fixture(scope="module")
def script(house):
    """The modules of scripts/mutants."""
    place = str(house.root / "scripts" / "mutants")
    before = set(sys.modules)
    sys.path.insert(0, place)

    def module(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield module
    sys.path.remove(place)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(place):
            del sys.modules[name]


@pytest.fixture
def mutants(script):
    return script("mutants_of").ALL


@pytest.fixture
def mutant(script):
    return script("mutant").Mutant(
        name="one more", file="_core/retry.py", old="attempt < max", new="attempt <= max", where="core/test_x.py",
        by="test_it",
    )  # fmt: skip


def test_every_mutant_still_breaks_one_line_that_stands_in_its_file_once(house, mutants):
    for mutant in mutants:
        text = (house.root / "src" / "rota" / mutant.file).read_text(encoding="utf-8")
        broken = mutant.applied(text)
        if mutant.file.endswith(".py"):
            ast.parse(broken, filename=mutant.file)
        assert abs(broken.count("\n") - text.count("\n")) <= 2, f"{mutant.name} is more than a line"

    assert len({mutant.name for mutant in mutants}) == len(mutants) >= 15


def test_every_test_that_a_mutant_names_is_there(house, mutants):
    named = sorted({f"tests/{mutant.test}" for mutant in mutants})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named],
        cwd=house.root,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_line_that_changed_is_said_to_be_out_of_date(script, mutant):
    with pytest.raises(script("mutant").Unfit, match=r"stands 0 times in src/rota/_core/retry\.py, not once"):
        mutant.applied("return attempt <= max_attempts")
    with pytest.raises(script("mutant").Unfit, match="stands 2 times"):
        mutant.applied("attempt < max or attempt < max")


@pytest.mark.parametrize(
    ("when", "error", "text", "why"),
    [
        (
            "call",
            "builtins.ZeroDivisionError: by zero",
            "",
            "failed at call by no claim: builtins.ZeroDivision",
        ),
        ("setup", "assertion", "", "failed at setup by no claim"),
        (
            "call",
            "assertion",
            "psycopg.errors.SyntaxError: at or near",
            "met no program at all: psycopg.errors.S",
        ),
        ("call", "assertion", "E   NameError: name 'x' is not defined", "met no program at all"),
        ("collect", "collection", "ImportError", "the test could not be run"),
    ],
)
def test_a_mutant_is_not_dead_by_an_accident(script, mutant, when, error, text, why):
    trial = script("trial")
    verdict = trial.judged(
        mutant, [trial.Record("tests/core/test_x.py::test_it", when, "failed", error, text)]
    )

    assert not verdict.killed
    assert why in verdict.why


def test_a_mutant_is_dead_when_the_named_test_or_one_of_its_runs_says_so(script, mutant):
    trial = script("trial")

    def judged(test: str, outcome: str) -> bool:
        error = "assertion" if outcome == "failed" else ""
        return trial.judged(mutant, [trial.Record(test, "call", outcome, error, "E   assert 6 == 5")]).killed

    assert judged("tests/core/test_x.py::test_it", "failed")
    assert judged("tests/core/test_x.py::test_it[memory]", "failed")
    assert not judged("tests/core/test_x.py::test_it", "passed")
    assert not judged("tests/core/test_x.py::test_it_too", "failed")


@pytest.mark.slow
def test_the_command_says_who_killed_a_mutant_and_fails_for_one_that_lives(house, tmp_path):
    place = house.root / "scripts" / "mutants"
    command = [sys.executable, str(place), "-k", "one attempt more than allowed"]
    done = subprocess.run(command, capture_output=True, text=True)
    harmless = f"""
import runpy, sys
sys.path.insert(0, {str(place)!r})
import mutants_of
from mutant import Mutant
mutants_of.ALL = [Mutant(name="harmless", file="_core/retry.py", old="five attempts in all", new="six attempts in all",
                         where={RULE.partition("::")[0]!r}, by={RULE.partition("::")[2]!r})]
sys.argv[1:] = []
runpy.run_path({str(place)!r}, run_name="__main__")
"""
    lives = subprocess.run([sys.executable, "-c", harmless], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 mutants killed" in done.stdout
    assert "test_the_last_attempt_that_fails_kills_the_job" in done.stdout
    assert lives.returncode == 1, lives.stdout + lives.stderr
    assert f"'harmless' lives: {RULE} still passes" in lives.stderr
    assert "+ six attempts in all" in lives.stderr
