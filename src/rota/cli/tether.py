"""What binds the processes of `rota dev` to it: they end when it does, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress


class Tether:
    """A pipe that nobody writes to. Its reading end goes to the children; it closes when this process is gone."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def start(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Start a child that takes `--tether`. It has a session of its own: Ctrl-C reaches it through us, once."""
        told = [*command, "--tether", str(self._read)]
        return subprocess.Popen(told, start_new_session=True, pass_fds=[self._read])  # noqa: S603 - our own interpreter


def end_with(reading: int | None) -> None:
    """In a child: end in order when whoever started us is gone."""
    if reading is None:
        return
    os.set_inheritable(reading, False)

    def wait() -> None:
        with suppress(OSError):
            os.read(reading, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="rota-tether", daemon=True).start()
