"""Is anybody waiting? Every queue with its backlog, its waits against what was promised, and who serves it."""

from __future__ import annotations

import asyncio
import shlex
from collections import Counter
from typing import Any, NamedTuple

from starlette.responses import Response

from rota._core.depths import Depths
from rota._core.explanation import WorkerSeen
from rota._core.filtering import quoted
from rota._core.job import State
from rota._core.lengths import span
from rota._core.numbers import Ending, Summary
from rota.admin.numbers import Overview, QueueView
from rota.stores.contract import JobFilter
from rota.web.asking import Asked, Asking
from rota.web.pages import charting, sharing
from rota.web.pages.charting import known
from rota.web.pages.rendering import render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.shares import shares_of
from rota.web.pages.sharing import shared
from rota.web.pages.spans import RANGES, Range, Ranged
from rota.web.pages.waiting import first_waits
from rota.web.problems import Problem
from rota.web.roles import Role

routes = PageRoutes()

OWN_JOBS = 500
SHOWN = 10
GONE = (Ending.COMPLETED, Ending.PARTIAL, Ending.DEAD, Ending.CANCELLED)
"""Endings after which a job does not come back into its queue."""


class Row(NamedTuple):
    """One queue, as the pages show it."""

    view: QueueView
    pending: list[float | None]
    """How many waited, along time."""
    coming: float | None
    """Jobs a minute that came in; None: unknown."""
    going: float | None
    """Jobs a minute that left it."""
    capped: bool
    """So many jobs wait in all queues that they were not counted to the end."""

    @property
    def drains(self) -> str:
        """When its backlog would be gone at the pace of this range."""
        return charting.drains(self.view.pending, self.going, capped=self.capped)

    @property
    def heat(self) -> str:
        """The tone of its thermometer."""
        if self.view.oldest_wait is None or not self.view.target:
            return "ok"
        share = self.view.oldest_wait.total_seconds() / self.view.target
        return "bad" if share > 1 else "warn" if share > 0.6 else "ok"

    @property
    def thermometer(self) -> str:
        """How long its oldest job waits, against what was promised, in words."""
        if self.view.oldest_wait is None:
            waits = (
                "nothing waits that is due" if self.view.due_known else "how long its oldest waits is unknown"
            )
        else:
            waits = f"the oldest waits {span(self.view.oldest_wait)}"
        return waits if self.view.target is None else f"{waits}; {span(self.view.target)} is the target"


class Own(NamedTuple):
    """What somebody of one tenant has in a queue."""

    queue: str
    pending: int
    running: int


@routes.get("/queues", verb="queues", role=Role.VIEWER)
async def queues(asked: Asked, chosen: Ranged) -> Response:
    """Every queue that has work, had some in this time, or is served by name."""
    if asked.tenant is not None:
        return await _of_tenant(asked)
    seen, depths, shares = await asyncio.gather(
        _seen(asked, chosen), known(sharing.depths(asked, chosen)), shares_of(asked, chosen)
    )
    rows = [_row(view, seen, depths) for view in seen.queues()]
    return render(
        asked,
        "queues.html",
        title="Queues",
        here="queues",
        topics="jobs",
        now=seen.now,
        rows=sorted(rows, key=lambda row: charting.busiest(row.view)),
        capped=seen.capped,
        pace=charting.pace,
        shares=shares,
        chosen=chosen,
        choices=list(RANGES),
    )


@routes.get("/queues/{name:path}", verb="queue", role=Role.VIEWER)
async def queue(asked: Asked, name: str, chosen: Ranged) -> Response:
    """One queue: how deep it is and was, how long jobs wait in it, and why its first one does."""
    if asked.tenant is not None:
        return await _one_of_tenant(asked, name)
    admin = asked.admin
    seen, chart, depths, specs, shares = await asyncio.gather(
        _seen(asked, chosen),
        known(sharing.series(asked, chosen, queue=name)),
        known(sharing.depths(asked, chosen)),
        known(admin.tasks()),
        shares_of(asked, chosen, name),
    )
    registered = [view.spec for view in specs or () if view.spec.queue == name]
    view = next((one for one in seen.queues() if one.queue == name), None)
    if view is None:
        if not registered and name not in (seen.targets or {}):
            raise _unknown(name)
        view = _quiet(seen, name)
    work = {} if seen.figures is None else charting.of_queue(seen.figures.totals, name)
    return render(
        asked,
        "queue.html",
        title=f"Queue {name}",
        here="queues",
        topics=f"queue:{name}",
        now=seen.now,
        row=_row(view, seen, depths),
        view=view,
        capped=seen.capped,
        pace=charting.pace,
        waits_for=await first_waits(asked, seen.counts, queue=name),
        work=work | {spec.name: Summary.of(()) for spec in registered if spec.name not in work},
        minutes=chosen.seconds / 60,
        shares=shares,
        serving=_serving(seen.workers, name),
        depth=charting.depth(depths, name),
        flow=charting.flow(chart, depths, name),
        waits=charting.waits(chart),
        throughput=charting.throughput(chart),
        columns=charting.COLUMNS,
        filter=f"queue:{quoted(name)}",
        command=f"rota jobs list {shlex.quote(f'queue:{quoted(name)}')}",
        chosen=chosen,
        choices=list(RANGES),
    )


async def _seen(asked: Asking, chosen: Range) -> Overview:
    """The whole as it stands, read once for all who look at queues now."""
    return await shared(asked, ("queues", chosen.word), lambda: asked.admin.overview(chosen.seconds))


async def _of_tenant(asked: Asking) -> Response:
    """The queues that his own unfinished jobs are in."""
    admin = asked.admin
    jobs, now = await asyncio.gather(
        admin.list(JobFilter(states=(State.PENDING, State.RUNNING), limit=OWN_JOBS, brief=True)),
        admin.store.now(),
    )
    found = Counter((job.queue, job.state) for job in jobs)
    names = sorted({name for name, _ in found})
    rows = [Own(name, found[name, State.PENDING], found[name, State.RUNNING]) for name in names]
    return render(
        asked,
        "queues_tenant.html",
        title="Queues",
        here="queues",
        topics="jobs",
        now=now,
        rows=rows,
        full=len(jobs) == OWN_JOBS,
    )


async def _one_of_tenant(asked: Asking, name: str) -> Response:
    """His own jobs in a queue; of a queue without any, nothing is told."""
    admin = asked.admin
    jobs, waits, now = await asyncio.gather(
        admin.list(JobFilter(states=(State.PENDING, State.RUNNING), queue=name, limit=SHOWN, brief=True)),
        first_waits(asked, None, queue=name),
        admin.store.now(),
    )
    return render(
        asked,
        "queue_tenant.html",
        title=f"Queue {name}",
        here="queues",
        topics=f"queue:{name}",
        now=now,
        name=name,
        jobs=jobs,
        waits_for=waits,
        filter=f"queue:{quoted(name)}",
        command=f"rota jobs list {shlex.quote(f'queue:{quoted(name)}')}",
    )


def _row(view: QueueView, seen: Overview, depths: Depths | None) -> Row:
    minutes = max(seen.since if seen.figures is None else seen.figures.seconds, 1.0) / 60
    gone = None if view.done is None else sum(view.done.endings.get(ending, 0) for ending in GONE)
    # Nobody counts what comes in: it is what left, and what there is more of than there was.
    samples = [one.of(view.queue) for one in (() if depths is None else depths.slices)]
    first = next((one for one in samples if one is not None), None)
    coming = None
    counted = view.pending is not None and view.running is not None and not seen.capped
    if counted and gone is not None and first is not None:
        coming = (
            max(0.0, gone + (view.pending or 0) + (view.running or 0) - first.pending - first.running)
            / minutes
        )
    pending = charting.pending(depths, view.queue)
    return Row(view, pending, coming, None if gone is None else gone / minutes, seen.capped)


def _quiet(seen: Overview, name: str) -> QueueView:
    """A queue that is known by name, and has neither work nor workers now."""
    told = seen.counts is not None
    zero = 0 if told else None
    slots = None if seen.workers is None else sum(worker.slots_for(name) for worker in seen.workers)
    done = None if seen.figures is None else Summary.of(())
    target = (seen.targets or {}).get(name)
    return QueueView(name, zero, zero, zero, None, slots, done, target, seen.heads is not None)


def _serving(workers: Any, name: str) -> list[tuple[WorkerSeen, int]] | None:
    """The living workers whose slots may run jobs of this queue, and how many slots; None: unknown."""
    if workers is None:
        return None
    found = [(worker, worker.slots_for(name)) for worker in workers]
    return sorted(
        ((worker, slots) for worker, slots in found if slots), key=lambda pair: (-pair[1], str(pair[0]))
    )


def _unknown(name: str) -> Problem:
    return Problem(
        404,
        "queue-not-found",
        f"No queue {name!r} has work, had some in this time, is served by name or is named by a task. "
        "Choose a longer range, or look at all queues.",
    )
