"""docs/reliability.md shows what was measured of Rota and its peers, and nothing else."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from types import ModuleType

import pytest


@pytest.fixture
def script(house) -> ModuleType:
    """scripts/reliability_table.py as a module."""
    spec = importlib.util.spec_from_file_location(
        "reliability_table", house.root / "scripts/reliability_table.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def a_result(**more) -> dict:
    return {
        "figure": "G1",
        "system": "rota",
        "version": "0.1.0",
        "profile": "defaults",
        "settings": "as it comes",
        "seed": 1,
        "sizes": {"jobs": 10},
        "measured": "2026-01-01",
        "shown": "0 / 0",
        "holds": True,
    } | more


def measured(*results: dict) -> dict:
    figures = {"G1": {"title": "jobs lost", "goal": "0"}}
    return {"figures": figures, "servers": {"postgresql": "18"}, "results": list(results)}


def test_the_page_shows_the_measured_peers(house):
    done = subprocess.run(
        [sys.executable, house.root / "scripts/reliability_table.py", "--check"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr


def test_a_missed_goal_is_shown_and_named(script):
    text = script.region(
        measured(a_result(holds=False, shown="3 / 0"), a_result(system="arq", shown="1 / 2"))
    )

    assert (
        "| G1 | jobs lost | 0 | defaults | **3 / 0** | not measured | not measured | not measured | 1 / 2 |"
        in text
    )
    assert "do not hold for Rota: G1 (defaults)" in text


def test_sizes_seed_and_version_stand_below_the_table(script):
    text = script.region(measured(a_result(), a_result(profile="tuned", settings="lease 3 s", seed=7)))

    assert "Every goal that was measured holds for Rota." in text
    assert "**rota 0.1.0**. Defaults: as it comes. Tuned: lease 3 s." in text
    assert "- G1: jobs 10; seed 1." in text
    assert "- G1: jobs 10; seed 7." in text


def test_every_result_has_what_repeating_it_needs(house):
    found = json.loads((house.root / "benchmarks/results/reliability.json").read_text())

    assert [
        result
        for result in found["results"]
        if not {"system", "version", "profile", "sizes", "seed", "shown"} <= set(result)
        or ("figures" not in result and "cannot" not in result and "failed_because" not in result)
    ] == []
    assert {result["figure"] for result in found["results"]} == set(found["figures"])


def test_every_figure_of_the_plan_is_measured_of_rota_and_asked_of_each_peer(house):
    found = json.loads((house.root / "benchmarks/results/reliability.json").read_text())
    asked = {(result["figure"], result["system"]) for result in found["results"]}
    held = {result["figure"] for result in found["results"] if result.get("holds")}

    plan = {f"G{number}" for number in (*range(1, 16), 19)}
    assert held == plan
    assert asked == {
        (figure, system)
        for figure in plan
        for system in ("rota", "pgqueuer", "procrastinate", "chancy", "arq")
    }
