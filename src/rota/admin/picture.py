"""One picture of the whole, for whoever watches: how it stands, what runs, what fails, what is not well."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rota._core.dead_letter import DeadFilter
from rota._core.job import State
from rota._core.review import Review
from rota.admin.alerts import MANY_WAIT, Alert, alerts
from rota.admin.bulk import Matched
from rota.admin.numbers import Numbers, Overview
from rota.admin.workers import RUNNING, WorkerView, viewed
from rota.errors import StoreError
from rota.stores.contract import JobFilter

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.dead_letter import FailureGroup
    from rota._core.explanation import Explanation
    from rota._core.happening import Happened, HappeningFilter, Mark, PayloadSize, Stints, Work
    from rota._core.suspects import ParkedTask

T = TypeVar("T")

RUNNING_SHOWN = 200
GROUPS_SHOWN = 20
UNDECIDED_COUNTED = 10_000
CROWDED_ASKED = 3
"""Of so many queues that are behind it is asked whose jobs wait there."""
CROWD_COUNTED = 5_000
NEWS_AT_ONCE = 500
STINTS = 2_000
"""So many stints of one worker are shown."""
SIZED = 50_000
"""So many unfinished jobs are looked at for the size of their payloads."""


class Picture(NamedTuple):
    """Everything at one moment. A part that could not be read is None; `unknown` says why."""

    seen: Overview
    running: Sequence[Work] | None
    """The longest first, at most `RUNNING_SHOWN`."""
    groups: Sequence[FailureGroup] | None
    """Dead letters that wait for review, the group that was seen last first."""
    undecided: Matched | None
    """How many dead letters wait for review. Other dead jobs are kept, and need nobody."""
    parked: Sequence[ParkedTask] | None
    tenants: Mapping[str, Mapping[str | None, int]]
    """Of queues that are behind: how many jobs of each tenant wait there."""
    unknown: Mapping[str, str]

    @property
    def alerts(self) -> list[Alert]:
        return alerts(self)


class Pictures(Numbers):
    """The questions of those who watch."""

    async def picture(self, since: float = 300.0) -> Picture:
        """The whole as it is now, with rates of the last so many seconds. Nothing readable at all is an error."""
        unknown: dict[str, str] = {}

        async def known(what: str, read: Awaitable[T]) -> T | None:
            try:
                return await read
            except StoreError as error:
                unknown[what] = str(error)
                return None

        waiting = DeadFilter(reviews=(Review.PENDING,))
        seen, running, groups, undecided, parked = await asyncio.gather(
            self.overview(since),
            known("running", self.store.running(limit=RUNNING_SHOWN)),
            known("failures", self.store.failure_groups(DeadFilter(limit=GROUPS_SHOWN))),
            known("undecided", self.store.count_dead_letters(waiting, cap=UNDECIDED_COUNTED)),
            known("parked", self.store.parked_tasks()),
        )
        tenants: dict[str, Mapping[str | None, int]] = {}
        for queue in _behind(seen):
            found = await known("tenants", self.store.backlog(queue, cap=CROWD_COUNTED, by_tenant=True))
            if found is not None:
                tenants[queue] = found
        counted = None if undecided is None else Matched(undecided, undecided >= UNDECIDED_COUNTED)
        return Picture(seen, running, groups, counted, parked, tenants, {**seen.unknown, **unknown})

    async def explain_first(self, *, queue: str | None = None, task: str | None = None) -> Explanation | None:
        """Why the oldest waiting job of a queue or task is not running; None: nothing waits there."""
        wanted = JobFilter(states=(State.PENDING,), queue=queue, task=task, oldest_first=True, limit=1)
        found = await self.store.find(wanted)
        return await self.explain(found[0].id) if found else None

    async def happened(self, mark: Mark, wanted: HappeningFilter) -> Happened:
        """What happened to jobs since a mark, and the mark to go on from."""
        return await self.store.happened(mark, wanted, limit=NEWS_AT_ONCE)

    async def workers(self) -> list[WorkerView]:
        """Those that work, and those that ended in the last hour, by host."""
        now, sessions, running = await asyncio.gather(
            self.store.now(), self.store.sessions(), self.store.running(limit=RUNNING)
        )
        used = Counter(work.session_id for work in running if work.session_id is not None)
        known = None if self.tenant is not None or len(running) >= RUNNING else used
        views = [viewed(record, now, known) for record in sessions]
        return sorted(views, key=lambda view: (view.state != "alive", view.record.host, view.record.pid))

    async def stints(self, session_id: UUID, seconds: float) -> Stints:
        """What the slots of one worker did in the last so many seconds."""
        since = await self.store.now() - timedelta(seconds=seconds)
        return await self.store.stints(session_id, since, limit=STINTS)

    async def payload_sizes(self) -> Sequence[PayloadSize]:
        """How large the payloads of unfinished jobs are, by task, the largest first."""
        return await self.store.payload_sizes(cap=SIZED)


def _behind(seen: Overview) -> list[str]:
    """The queues of which it matters whose jobs wait there, the longest backlog first."""
    behind = [view for view in seen.queues() if view.late or (view.pending or 0) > MANY_WAIT]
    behind.sort(key=lambda view: -(view.pending or 0))
    return [view.queue for view in behind[:CROWDED_ASKED]]
