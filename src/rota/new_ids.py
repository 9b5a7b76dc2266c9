"""New ids: UUIDs that sort in the order of their time."""

from __future__ import annotations

from uuid import UUID, SafeUUID

from uuid_utils import uuid7

_UNKNOWN = SafeUUID.unknown
_set_int, _set_safe = UUID.__dict__["int"].__set__, UUID.__dict__["is_safe"].__set__


def new_id() -> UUID:
    """A UUIDv7; later ones of this process sort after earlier ones."""
    # What UUID(int=...) does, at a third of its price: it was a fifth of all that a bulk enqueue costs here.
    made = UUID.__new__(UUID)
    _set_int(made, uuid7().int)
    _set_safe(made, _UNKNOWN)
    return made
