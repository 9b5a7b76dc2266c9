"""The table of faults: every test that it names is there, in the tier that it says."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from chaos.fault import EVERY, LONG, SMALL
from chaos.faults import FAULTS, MIXED

ROOT = Path(__file__).resolve().parents[2]


@cache
def functions(file: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse((ROOT / file).read_text())
    return {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@cache
def marks(file: str) -> str:
    """The marks of a whole file."""
    tree = ast.parse((ROOT / file).read_text())
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    return " ".join(
        ast.unparse(node.value) for node in assigned if ast.unparse(node.targets[0]) == "pytestmark"
    )


def tier(test: str) -> str:
    """Which tier a test belongs to, by its marks and by what it asks for."""
    file, _, name = test.partition("::")
    found = functions(file)[name]
    said = " ".join([marks(file), *(ast.unparse(mark) for mark in found.decorator_list)])
    if "mark.chaos" not in said:
        return SMALL if "mark.slow" in said else EVERY
    return LONG if {"long", "seed"} & {argument.arg for argument in found.args.args} else SMALL


NAMED = [(fault.number, at, test) for fault in FAULTS for at, test in fault.tests]


@pytest.mark.parametrize(
    ("number", "at", "test"), NAMED, ids=lambda given: str(given).rpartition("::")[2][:60]
)
def test_every_test_that_the_table_names_exists_in_its_tier(number, at, test):
    file, _, name = test.partition("::")

    assert (ROOT / file).exists(), f"F{number}: there is no file {file}"
    assert name in functions(file), f"F{number}: {file} has no {name}"
    # Elsewhere than here small tests have no mark of their own.
    assert at == tier(test) or {at, tier(test)} == {EVERY, SMALL}, (
        f"F{number} calls {test} {at}, it is {tier(test)}"
    )


def test_the_table_is_in_order_and_says_of_each_fault_what_is_done_and_what_holds():
    numbers = [fault.number for fault in FAULTS]

    assert numbers == sorted(set(numbers))
    for fault in FAULTS:
        assert fault.tests, f"F{fault.number} has no test"
        assert fault.what.endswith("."), fault
        assert fault.holds.endswith("."), fault


def test_every_fault_of_the_engine_is_in_the_table():
    engine = {*range(1, 32), 34, 35, *range(42, 46), *range(48, 53)}

    assert {fault.number for fault in FAULTS} >= engine


def test_every_chaos_test_belongs_to_a_fault():
    """Or it is about something that the table does not count as one: schedules, counts, and what people do."""
    named = {test for _, _, test in NAMED} | {MIXED}
    others = {
        "test_cancels_at_any_moment_of_a_jobs_life_leave_one_end_that_both_sides_agree_on",
        "test_another_tenant_has_its_own_job_and_other_arguments_are_a_conflict",
        "test_two_schedulers_that_are_killed_take_every_tick_once_over_changes_of_the_clocks",
        "test_holding_deploying_draining_and_purging_under_load_harm_no_job",
        "test_a_drained_fleet_leaves_nothing_running_and_all_that_waits_to_the_next",
        "test_where_nobody_is_hurt_every_end_is_counted_by_task_and_tenant",
        "test_where_workers_are_killed_no_more_is_counted_than_happened",
        "test_no_tenant_is_shown_a_word_of_another",
        "test_a_purge_beside_claims_reprocessing_and_keys_loses_nothing_and_takes_nothing_early",
    }
    orphans = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        file = f"tests/chaos/{path.name}"
        tests = [
            name for name in functions(file) if name.startswith("test_") and tier(f"{file}::{name}") != EVERY
        ]
        orphans += [name for name in tests if f"{file}::{name}" not in named and name not in others]

    assert orphans == []
