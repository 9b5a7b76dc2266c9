"""Did the deploy hurt? Where in a chart the first worker with other code came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from rota._core.happening import CodeVersion
from rota._core.series import Chart
from rota.stores.contract import SessionRecord

WIDE = 1000
VERSIONS = 20
"""So many versions are looked at: more lines than that would hide the chart."""


class CodeMark(NamedTuple):
    """A version of the code that was new in the time of a chart."""

    version: str
    at: datetime
    """When its first worker started."""
    x: float
    """Where that is, of `WIDE`."""


def code_marks(
    sessions: Sequence[SessionRecord] | None, chart: Chart | None, versions: Sequence[CodeVersion] | None = ()
) -> list[CodeMark]:
    """The versions that came while others were known: a restart of the same code is no deploy.

    Sessions are forgotten soon after they ended; when a version was first seen is not.
    """
    begun = {one.version: one.first_seen for one in versions or ()}
    for session in sorted(sessions or (), key=lambda session: session.started_at):
        if session.code_version is not None:
            begun.setdefault(session.code_version, session.started_at)
    if chart is None or len(chart.points) < 2:
        return []
    # Charts go from the beginning of their first slice to the beginning of their last.
    first, last = chart.points[0].start, chart.points[-1].start
    return [
        CodeMark(version, at, round(min(1.0, (at - first) / (last - first)) * WIDE, 1))
        for version, at in sorted(begun.items(), key=lambda pair: pair[1])[1:]
        if at >= first
    ]
