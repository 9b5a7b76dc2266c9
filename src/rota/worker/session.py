"""A session: one life of this worker in the store, and how long it may trust that it is alive."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Mapping
from time import monotonic
from uuid import UUID

from rota.new_ids import new_id
from rota.stores.contract import SessionStart
from rota.worker.memory import memory_used

MARGIN = 2.0


class Session:
    """Who owns the jobs that were claimed under it.

    Trust runs by this machine's monotonic clock, counted from the moment a
    beat was *sent*, and ends a little before the lease does in the store. Past
    it, somebody else may own the jobs.

    `kept` answers when somebody else last sent a beat for this session: the
    supervisor does while this process cannot.
    """

    __slots__ = ("_kept", "id", "lease", "sent", "trusted_until")

    def __init__(
        self, session_id: UUID, lease: float, sent: float, kept: Callable[[UUID], float] | None = None
    ) -> None:
        self.id = session_id
        self.lease = lease
        self.trusted_until = 0.0
        self._kept = kept
        self.prolong(sent)

    def prolong(self, sent: float) -> None:
        """A beat that was sent at `sent` was answered well."""
        self.sent = sent
        self.trusted_until = sent + self.lease - min(MARGIN, self.lease / 5)

    @property
    def trusted(self) -> bool:
        return monotonic() < self.trusted_until or (self._kept is not None and self._was_kept())

    def _was_kept(self) -> bool:
        assert self._kept is not None
        sent = self._kept(self.id)
        if sent > self.sent:
            self.prolong(sent)
        return monotonic() < self.trusted_until


def introduce(
    lanes: Mapping[str, int],
    tasks: tuple[str, ...],
    code_version: str | None = None,
    queues: Mapping[str, tuple[str, ...] | None] | None = None,
    tenant: str | None = None,
) -> SessionStart:
    """A new session's introduction. The id is new for each life, so a restarted worker adopts nothing."""
    return SessionStart(
        new_id(),
        socket.gethostname(),
        os.getpid(),
        dict(lanes),
        tasks,
        code_version,
        _user(),
        queues,
        tenant,
        memory_used(),
        hears=True,
    )


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        return None
