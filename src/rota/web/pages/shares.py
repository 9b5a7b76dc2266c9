"""Does one tenant starve the rest? Who has the slots now, and for whom work ran along time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota._core.happening import Share
from rota._core.lengths import many, percent
from rota._core.series import TenantSeries
from rota.admin.numbers import TOLD_APART
from rota.web.asking import Asking
from rota.web.pages import sharing
from rota.web.pages.charting import Rows, known
from rota.web.pages.spans import Range

HUES = tuple(f"h{number}" for number in range(TOLD_APART))
OTHERS = "h5"
WIDE = 1000
"""The box of the bar."""


class Part(NamedTuple):
    """What one tenant has of a bar, or all that are not told apart."""

    tenant: str
    jobs: int
    share: float
    tone: str
    x: float
    width: float

    @property
    def shade(self) -> str:
        """The class that gives it its colour: tenants have those of no state."""
        return f"hue-{self.tone}"

    @property
    def words(self) -> str:
        return f"{self.tenant}: {many(self.jobs, 'job')}, {percent(self.share)}"


class Shares(NamedTuple):
    """Who has the slots: now, and along time."""

    now: Sequence[Part]
    columns: Sequence[tuple[str, str, str]]
    rows: Rows


async def shares_of(asked: Asking, chosen: Range, queue: str | None = None) -> Shares | None:
    """Of one queue now, or of all of them now and along time; None: unknown, or nobody is told from anybody."""
    running = await known(sharing.shared(asked, "running by tenant", asked.admin.running_by_tenant))
    if queue is not None:
        parts = parted([share for share in running or () if share.queue == queue])
        return Shares(parts, (), []) if running is not None and _named(parts) else None
    series = await known(
        sharing.shared(
            asked,
            ("tenants", chosen.word),
            lambda: asked.admin.tenant_series(chosen.seconds),
            lasts=sharing.SAMPLED,  # of thousands of tenants in a month it reads millions of rows
        )
    )
    tenants = () if series is None else series.tenants
    parts = parted(running or (), [called(tenant) for tenant in tenants])
    return Shares(parts, _columns(series), _rows(series)) if _named(parts) or any(tenants) else None


def parted(running: Sequence[Share], coloured: Sequence[str] = ()) -> list[Part]:
    """The bar of a moment: who has most first, then all others together.

    Whoever is `coloured` in a picture beside it has the same colour here.
    """
    jobs: dict[str, int] = {}
    for share in running:
        name = called(share.tenant)
        jobs[name] = jobs.get(name, 0) + share.jobs
    ranked = sorted(jobs, key=lambda name: (-jobs[name], name))
    tones = dict(zip(coloured, HUES, strict=False))
    free = iter(HUES[len(tones) :])
    told = [(name, jobs[name], tones.get(name) or next(free, OTHERS)) for name in ranked[:TOLD_APART]]
    rest = ranked[TOLD_APART:]
    if rest:
        told.append((many(len(rest), "other"), sum(jobs[name] for name in rest), OTHERS))
    whole, at, parts = sum(jobs.values()), 0.0, []
    for name, number, tone in told:
        width = number / whole * WIDE
        parts.append(Part(name, number, number / whole, tone, round(at, 1), round(width, 1)))
        at += width
    return parts


def called(tenant: str | None) -> str:
    return tenant or "no tenant"


def _named(parts: Sequence[Part]) -> bool:
    """Whether there is anybody to tell apart: an app without tenants has no use for the picture."""
    return any(part.tenant != called(None) for part in parts)


def _columns(series: TenantSeries | None) -> list[tuple[str, str, str]]:
    if series is None:
        return []
    told = [(called(tenant), tone, "bar") for tenant, tone in zip(series.tenants, HUES, strict=False)]
    return [*told, ("others", OTHERS, "bar")]


def _rows(series: TenantSeries | None) -> Rows:
    slices = () if series is None else series.slices
    return [(one.start, [round(seconds, 3) for seconds in one.ran]) for one in slices]
