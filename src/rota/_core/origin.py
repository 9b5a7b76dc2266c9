"""Where an action comes from: the address and the request behind it, for its row in the audit.

A face says it once for all that one request does; whoever writes the audit asks here. What goes on after the
answer, such as a bulk operation, still comes from that request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_origin: ContextVar[str | None] = ContextVar("rota_origin", default=None)


def origin() -> str | None:
    """Where what is done now comes from; None: from this machine itself, as on the command line."""
    return _origin.get()


@contextmanager
def acting_from(text: str) -> Iterator[None]:
    """All that is done inside comes from there."""
    token = _origin.set(text)
    try:
        yield
    finally:
        _origin.reset(token)
