"""Stages for the tests of the supervisor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from supervisor_stage import Stage


@pytest.fixture
def stage(tmp_path: Path, fresh_database: str) -> Iterator[Stage]:
    """An app on a database of its own; every process of it ends with the test."""
    stage = Stage(tmp_path, fresh_database)
    yield stage
    stage.close()
