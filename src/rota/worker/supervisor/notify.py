"""sd_notify: a few words to systemd about how we are. Without $NOTIFY_SOCKET it does nothing."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress


class Notifier:
    """Sends datagrams to systemd's socket, and the watchdog's sign of life as often as systemd wants it."""

    def __init__(self) -> None:
        self._address = os.environ.pop("NOTIFY_SOCKET", "")  # ours alone: children must not speak for us
        self._every = _watchdog_seconds()
        self._next = 0.0
        self._status = ""

    @property
    def every(self) -> float | None:
        """Seconds between signs of life; None when nobody waits for them."""
        return self._every

    def ready(self) -> None:
        self._send("READY=1")

    def reloading(self) -> None:
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def status(self, words: str) -> None:
        """One line for `systemctl status`, sent when it changes."""
        if words != self._status:
            self._status = words
            self._send(f"STATUS={words}")

    def alive(self) -> None:
        """Called often; tells the watchdog when it is time to."""
        now = time.monotonic()
        if self._every is not None and now >= self._next:
            self._next = now + self._every
            self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        # A leading @ stands for the NUL of an abstract address.
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.setblocking(False)  # a listener that does not read must not hold us up
            line.sendto(message.encode(), address)


def _watchdog_seconds() -> float | None:
    """A third of what the watchdog allows, if it is set, and set for us."""
    allowed, meant_for = os.environ.pop("WATCHDOG_USEC", ""), os.environ.pop("WATCHDOG_PID", "")
    if not allowed.isdigit() or int(allowed) == 0 or (meant_for and meant_for != str(os.getpid())):
        return None
    return int(allowed) / 1_000_000 / 3
