"""New code is marked where its first worker started; a restart is not."""

from __future__ import annotations

from datetime import datetime, timedelta

from build import NOON, new_id
from rota._core.happening import CodeVersion
from rota._core.series import Chart, Point
from rota.stores.contract import SessionRecord
from rota.web.pages.marks import code_marks

HOUR = tuple(Point(NOON + timedelta(minutes=at)) for at in range(61))
CHART = Chart(NOON, NOON + timedelta(hours=1), 60.0, HOUR)


def a_worker(version: str | None, minutes: float) -> SessionRecord:
    started = NOON + timedelta(minutes=minutes)
    return SessionRecord(new_id(), "host", 1, {"general": 5}, started, started, None, code_version=version)


def marks(*workers: SessionRecord, chart: Chart | None = CHART) -> list[tuple[str, datetime, float]]:
    return [tuple(mark) for mark in code_marks(workers, chart)]


def test_the_first_worker_with_other_code_is_a_mark():
    found = marks(a_worker("v2", 45), a_worker("v1", -300), a_worker("v2", 30))

    assert found == [("v2", NOON + timedelta(minutes=30), 500.0)]


def test_a_restart_of_the_same_code_is_none():
    assert marks(a_worker("v1", -300), a_worker("v1", 30), a_worker(None, 40)) == []


def test_what_came_before_the_chart_or_is_not_known_is_none():
    assert marks(a_worker("v1", -300), a_worker("v2", -1)) == []
    assert marks(a_worker("v1", -300), a_worker("v2", 5), chart=None) == []
    assert code_marks(None, CHART) == []


def test_one_that_came_in_the_last_slice_stands_at_its_edge():
    assert marks(a_worker("v1", -300), a_worker("v2", 60.5))[0][2] == 1000.0


def test_what_was_first_seen_is_a_mark_also_when_its_sessions_are_forgotten():
    versions = [CodeVersion(f"v{at}", NOON + timedelta(minutes=at)) for at in (30, 15, -90)]

    found = code_marks([a_worker("v30", 31)], CHART, versions)

    assert [(mark.version, mark.x) for mark in found] == [("v15", 250.0), ("v30", 500.0)]
    assert code_marks([], CHART, versions[:1]) == []  # the first of all is no deploy
