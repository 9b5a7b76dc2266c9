"""How long a connection may say or take nothing: one that only holds its place gives it up (slowloris)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from asyncio import TimerHandle, Transport

HEAD_SECONDS = 10.0
"""From the beginning, or from the last answer, until a request must be there whole but for its body."""
STUCK_SECONDS = 60.0
"""So long somebody may take nothing of what is sent to him."""


class Patient(H11Protocol):
    """Speaks HTTP as uvicorn does, and closes connections that neither ask nor read.

    uvicorn waits for ever for the rest of a request's head, for the end of a
    body that nobody wanted, and for a reader who stopped reading. Each such
    connection costs a descriptor, so that one machine could take them all.
    Bodies that are wanted have their own limit (`rota.web.limits`).
    """

    _asking: TimerHandle | None = None
    _reading: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._mind()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._mind()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._mind()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._asking, self._reading):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def _mind(self) -> None:
        """The clock runs while it is the other side's turn, and a few bytes do not set it back."""
        ours = self.cycle is not None and not self.cycle.response_complete
        if ours and self._asking is not None:
            self._asking.cancel()
            self._asking = None
        elif not ours and self._asking is None:
            self._asking = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._hang_up)

    def _hang_up(self) -> None:
        """Close it. What was answered is still sent, to one who reads."""
        self.transport.close()
        self._watch_reader()

    def _watch_reader(self) -> None:
        left = self.transport.get_write_buffer_size()
        if self._reading is None and left:
            self._reading = asyncio.get_running_loop().call_later(STUCK_SECONDS, self._look_again, left)

    def _look_again(self, before: int) -> None:
        self._reading = None
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._watch_reader()
