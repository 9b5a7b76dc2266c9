"""A pytest plugin: sees to it that a mutant's own code is tested, and writes down how each test ended and why.

`MUTANT_SOURCE` says where the code must come from, `MUTANT_RECORDS` where the records go, one JSON object a line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

MOST = 20_000


def pytest_configure(config: pytest.Config) -> None:  # noqa: ARG001 - pytest's signature
    import rota

    source, found = Path(os.environ["MUTANT_SOURCE"]), Path(rota.__file__).resolve()
    if not found.is_relative_to(source):
        pytest.exit(f"rota was imported from {found}, not from the mutant's tree {source}", returncode=70)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    error = call.excinfo
    if error is None or report.passed or report.skipped:
        _write(test=item.nodeid, when=report.when, outcome=report.outcome, error="", text="")
    else:
        text = report.longreprtext + "\n".join(f"{title}\n{said}" for title, said in report.sections)
        _write(
            test=item.nodeid, when=report.when, outcome=report.outcome, error=_named(error), text=text[-MOST:]
        )
    return report


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write(
            test=report.nodeid,
            when="collect",
            outcome="failed",
            error="collection",
            text=report.longreprtext[-MOST:],
        )


def _named(error: pytest.ExceptionInfo[BaseException]) -> str:
    """What kind of failure it is: `assertion`, or the error's name."""
    value = error.value
    while isinstance(value, BaseExceptionGroup) and len(value.exceptions) == 1:
        value = value.exceptions[0]
    if isinstance(value, AssertionError):
        return "assertion"
    if isinstance(value, pytest.fail.Exception) and not str(value).startswith("Timeout"):
        return "assertion"  # DID NOT RAISE, and what tests say by pytest.fail()
    if isinstance(value, TimeoutError) and _waited_in_vain(error):
        return "assertion"
    return f"{type(value).__module__}.{type(value).__qualname__}: {str(value)[:200]}"


def _waited_in_vain(error: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether a time that the test itself had set ran out: what it says must come true did not."""
    *_, setter, last = [None, *(Path(str(entry.path)) for entry in error.traceback)]
    inside = setter is not None and Path(os.environ["MUTANT_SOURCE"]).with_name("tests") in setter.parents
    return inside and last is not None and last.parts[-2:] == ("asyncio", "timeouts.py")


def _write(**record: Any) -> None:
    with Path(os.environ["MUTANT_RECORDS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
