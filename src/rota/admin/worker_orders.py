"""What people ask of a worker from afar: to drain, or to stop. Each order with its audit row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota._core.actions import Audit
from rota._core.worker_order import OrderVerb, about
from rota.admin.picture import Pictures
from rota.admin.scope import OutOfScope
from rota.errors import RotaError

if TYPE_CHECKING:
    from uuid import UUID

    from rota.admin.workers import WorkerView

TRIES = 3


class WorkerNotFound(RotaError, LookupError):
    """No worker has this id."""

    def __init__(self, session_id: UUID) -> None:
        super().__init__(
            f"no worker has the id {session_id}. Those that ended more than an hour ago are forgotten; "
            "`rota workers list --all` shows the others."
        )


class OrderRefused(RotaError):
    """A worker cannot be asked for this as things stand."""


class WorkerOrders(Pictures):
    """The orders. A worker hears of one with its next beat, acts on it once, and nobody takes its place."""

    async def worker(self, session_id: UUID) -> WorkerView:
        """One worker, or `WorkerNotFound`."""
        found = next((view for view in await self.workers() if view.record.id == session_id), None)
        if found is None:
            raise WorkerNotFound(session_id)
        return found

    async def drain_worker(self, session_id: UUID, *, reason: str | None = None) -> WorkerView:
        """Let it take no more jobs, finish those that run however long they take, and go.

        `OrderRefused` for one that has ended, does not answer orders or stops already.
        """
        return await self._order(session_id, OrderVerb.DRAIN, reason)

    async def stop_worker(self, session_id: UUID, *, reason: str | None = None) -> WorkerView:
        """Let it do what SIGTERM does: finish what runs within its grace, hand back the rest, and go.

        `OrderRefused` for one that has ended or does not answer orders.
        """
        return await self._order(session_id, OrderVerb.STOP, reason)

    async def _order(self, session_id: UUID, verb: OrderVerb, reason: str | None) -> WorkerView:
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "a worker")
        for _ in range(TRIES):
            view = await self.worker(session_id)
            check_order(view, verb)
            if view.state == verb.doing:
                return view  # asked before: nothing is to be added
            audit = Audit(
                self.actor, verb.value, None, reason, view.state, verb.doing, about=about(session_id)
            )
            if await self.store.order_worker(session_id, verb, audit):
                return await self.worker(session_id)
        raise OrderRefused(f"worker {view} could not be asked to {verb.value}. Look at it, and ask again.")


def check_order(view: WorkerView, verb: OrderVerb) -> None:
    """`OrderRefused` if this worker cannot be asked for that, with the reason and what to do."""
    record = view.record
    if view.state == "gone":
        why = f"it ended at {record.ended_at:%H:%M:%S} UTC. `rota workers` shows who is at work."
    elif view.state == "lost":
        why = (
            f"it has not answered since {record.lease_until:%H:%M:%S} UTC, and its jobs go to others. "
            f"Look on {record.host} what became of it."
        )
    elif not record.hears:
        why = (
            "it does not answer orders: it runs a version of Rota from before them. "
            f"On {record.host}, send it the signal that ends it: kill -TERM {record.pid}"
        )
    elif verb is OrderVerb.DRAIN and view.state == OrderVerb.STOP.doing:
        by = "" if record.order is None else f", asked by {record.order.by}"
        why = f"it is stopping already{by}, and a stop cannot be taken back."
    else:
        return
    raise OrderRefused(f"worker {view} cannot be asked to {verb.value}: {why}")
