"""What is not well with the store itself, for those who look at the work: the same that `rota doctor` finds. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rota._core.lengths import span
from rota.admin.alerts import Alert

if TYPE_CHECKING:
    from rota._core.room import Room

LONG_TRANSACTION = 300.0
SKEW = 2.0
CROWDED = 0.9


def store_alerts(room: Room | None, ahead: float = 0.0) -> list[Alert]:
    """What deserves an eye. `ahead`: so many seconds the store's clock is before ours; no room: nothing is known."""
    return [] if room is None or room.version is None else list(_alerts(room, ahead))


def _alerts(room: Room, ahead: float) -> Iterator[Alert]:
    if room.schema is not None and room.needed is not None and room.schema < room.needed:
        what = (
            f"the schema of the store is behind: it has version {room.schema}, this code needs {room.needed}"
        )
        yield Alert(True, "system", what, "Bring it up to date: rota migrate")
    if room.read_only:
        what = "the store takes no changes: it is a replica, or set to read only"
        yield Alert(False, "system", what, "Look as long as you like; to act, use the address of the primary")
    if room.connections and room.most_connections and room.connections > CROWDED * room.most_connections:
        what = f"{room.connections:,} of {room.most_connections:,} connections to the server are in use"
        yield Alert(False, "system", what, "Put a pooler before it, or run fewer processes")
    if room.oldest_transaction is not None and room.oldest_transaction > LONG_TRANSACTION:
        who = room.oldest_by or "an unnamed client"
        what = f"a transaction of {who} is {span(float(round(room.oldest_transaction)))} old and holds vacuum back"
        yield Alert(False, "system", what, "End it if it is forgotten; which one it is: rota doctor")
    if abs(ahead) > SKEW:
        what = (
            f"the store's clock is {span(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} this machine's"
        )
        yield Alert(False, "system", what, "Jobs follow the store's clock, logs do not: check NTP")
