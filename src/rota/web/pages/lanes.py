"""Swimlanes: what the slots of a worker did side by side, in as few lanes as it takes. Idle time stays empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from rota._core.happening import Stint
from rota._core.lengths import many, span
from rota.web.pages.drawing import Bar

TONES = {"completed": "ok", "partial": "ok", "running": "run", "cancelled": "off"}
"""What is called otherwise has failed."""
THIN = 3.0
"""Bars below this width, of a lane of a thousand, that stand close together are drawn as one."""


class Block(NamedTuple):
    """One bar of a lane: a stint, or several short ones of the same tone side by side."""

    bar: Bar
    job_id: UUID
    stints: int


class Lanes(NamedTuple):
    """A picture of so many lanes."""

    rows: Sequence[Sequence[Block]]
    tracks: Sequence[Bar]
    """The ground of each lane, also of those that had nothing to do."""
    width: float
    height: float
    busy: float
    """The share of all slots' time in which something ran; at most 1."""
    left_out: int
    """Lanes that had something in them and found no room."""


def packed(stints: Iterable[Stint], since: datetime, now: datetime) -> list[list[Stint]]:
    """Stints in lanes, so that none overlaps another of its lane; each goes into the first lane that is free."""
    lanes: list[list[Stint]] = []
    free: list[datetime] = []
    for stint in sorted(stints, key=lambda one: (one.begun, one.job_id)):
        ended = min(stint.ended or now, now)
        if ended < since or stint.begun > now:
            continue
        at = next((number for number, until in enumerate(free) if until <= stint.begun), None)
        if at is None:
            lanes.append([])
            free.append(ended)
            at = len(lanes) - 1
        lanes[at].append(stint)
        free[at] = max(ended, stint.begun)
    return lanes


def drawn(
    stints: Iterable[Stint],
    since: datetime,
    now: datetime,
    slots: int,
    *,
    most: int = 24,
    width: float = 1000,
    tall: float = 14,
    gap: float = 4,
) -> Lanes:
    """The picture of the time between two moments; slots that had nothing to do are lanes, too."""
    lanes = packed(stints, since, now)
    whole = max((now - since).total_seconds(), 1e-9)
    count = max(min(max(slots, len(lanes)), most), 1)
    rows = [
        _row(lane, since, now, width / whole, y=number * (tall + gap), tall=tall)
        for number, lane in enumerate(lanes[:count])
    ]
    ran = sum(
        (min(one.ended or now, now) - max(one.begun, since)).total_seconds() for lane in lanes for one in lane
    )
    busy = min(ran / (whole * max(slots, 1)), 1.0)
    tracks = [Bar(0, number * (tall + gap), width, tall, "ground") for number in range(count)]
    return Lanes(rows, tracks, width, count * (tall + gap) - gap, busy, max(len(lanes) - count, 0))


def tone(stint: Stint) -> str:
    return TONES.get(stint.outcome, "bad")


def _row(
    lane: Sequence[Stint], since: datetime, now: datetime, scale: float, *, y: float, tall: float
) -> list[Block]:
    found: list[Block] = []
    for stint in lane:
        begun, ended = max(stint.begun, since), min(stint.ended or now, now)
        x = (begun - since).total_seconds() * scale
        wide = max((ended - begun).total_seconds() * scale, 1.0)
        if found and _close(found[-1].bar, x, wide, tone(stint)):
            last = found[-1]
            bar = last.bar._replace(
                width=round(x + wide - last.bar.x, 2), title=_many(last.stints + 1, stint)
            )
            found[-1] = Block(bar, stint.job_id, last.stints + 1)
            continue
        found.append(
            Block(Bar(round(x, 2), y, round(wide, 2), tall, tone(stint), _one(stint, now)), stint.job_id, 1)
        )
    return found


def _close(last: Bar, x: float, wide: float, colour: str) -> bool:
    return last.tone == colour and wide < THIN and x - (last.x + last.width) < THIN / 2


def _one(stint: Stint, now: datetime) -> str:
    took = span(max((stint.ended or now) - stint.begun, now - now))
    return f"{stint.task}: {stint.outcome}, {took}, from {stint.begun:%H:%M:%S} UTC"


def _many(number: int, last: Stint) -> str:
    return f"{many(number, 'short job')} until {last.begun:%H:%M:%S} UTC, the last one {last.task}: {last.outcome}"
