"""README shows the figures that were measured, and no others."""

from __future__ import annotations

import subprocess
import sys


def test_the_readme_shows_the_measured_figures(house):
    done = subprocess.run(
        [sys.executable, house.root / "scripts/readme_bench.py", "--check"], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
