"""docs/reliability.md shows the faults that are tested, and the runs that were made, and no others."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chaos.faults import FAULTS
from chaos.ledger import Entry, record, recorded


def test_the_page_shows_the_faults_and_runs_as_they_are(house):
    script = house.root / "scripts/faults_table.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_every_fault_has_its_row(house):
    page = (house.root / "docs/reliability.md").read_text()

    assert [fault.number for fault in FAULTS if f"| F{fault.number} | {fault.what} |" not in page] == []


@pytest.mark.parametrize("supervised", [False, True])
def test_a_run_is_written_down_and_read_again_the_last_of_its_kind_counts(tmp_path, supervised):
    path = tmp_path / "runs.jsonl"
    first = Entry(7, supervised, 30.0, 900, 940, None, {"freeze": 2}, "2026-01-01")
    again, other = first._replace(violations=0), first._replace(seed=3, violations=1)
    for entry in (first, again, other):
        record(path, entry)

    assert recorded(path) == [other, again]
    assert recorded(tmp_path / "none.jsonl") == []
