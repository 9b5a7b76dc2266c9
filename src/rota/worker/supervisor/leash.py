"""The leash: a child's end of what binds it to its supervisor. It ends when the supervisor does."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from rota._core.worker_order import OrderVerb
from rota.worker.supervisor import wire
from rota.worker.supervisor.block import Block, Phase
from rota.worker.supervisor.shown import LastLines, Shown
from rota.worker.supervisor.wire import Facts, Failed

STACK_SIGNAL = int(getattr(signal, "SIGRTMIN", signal.SIGUSR2)) + (7 if hasattr(signal, "SIGRTMIN") else 0)
"""Makes a child write its stacks, even while one thread holds the interpreter. One that programs leave alone."""
PR_SET_PDEATHSIG = 1


class Ends(NamedTuple):
    """What a child is given: the descriptors of its socket, block and stack file, its number, and whose child it is."""

    control: int
    block: int
    stack: int
    number: int
    parent: int

    def __str__(self) -> str:
        return ",".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> Ends:
        """Read what `str()` wrote; ValueError for anything else."""
        return cls(*(int(part) for part in text.split(",", 4)))


class Leash:
    """Taken up before anything else happens in a child; the app is imported afterwards."""

    def __init__(self, ends: Ends) -> None:
        self.number = ends.number
        _die_with(ends.parent)
        for fd in ends[:3]:
            os.set_inheritable(fd, False)  # what jobs start must not hold our socket open
        self.block = Block(ends.block)
        os.close(ends.block)
        self._socket = socket.socket(fileno=ends.control)
        self._stack = os.fdopen(ends.stack, "wb", buffering=0)
        faulthandler.enable(self._stack)
        faulthandler.register(STACK_SIGNAL, self._stack)
        self._on_stop: Callable[..., None] | None = None
        threading.Thread(target=self._listen, name="rota-leash", daemon=True).start()

    def shown(self, timeouts: dict[str, float | None]) -> Shown:
        """The app is imported; what the worker does can be shown from now on."""
        logging.getLogger().addHandler(LastLines(self.block))
        self.block.set_phase(Phase.OPENING)
        return Shown(self.block, timeouts)

    def on_stop(self, stop: Callable[..., None]) -> None:
        """Call `stop(now=…, patiently=…)` in another thread when told so. Until then a stop simply ends the process."""
        self._on_stop = stop

    def ready(self, facts: Facts) -> None:
        self.block.set_phase(Phase.WORKING)
        self._send(wire.line(wire.READY, **facts._asdict()))

    def failed(self, failed: Failed) -> None:
        self._send(wire.line(wire.FAILED, **failed._asdict()))

    def ordered(self, verb: OrderVerb) -> None:
        """Somebody asked from afar that the worker goes, and it does."""
        self._send(wire.line(wire.ORDERED, verb=verb.value))

    def bye(self, code: int) -> None:
        """The worker has ended as it should, and its session with it."""
        self._send(wire.line(wire.BYE, code=code))

    def _send(self, message: bytes) -> None:
        with suppress(OSError):  # the supervisor is gone, and so are we in a moment
            self._socket.sendall(message)

    def _listen(self) -> None:
        with suppress(OSError), self._socket.makefile("rb") as lines:
            for text in lines:
                word, _ = wire.read(text)
                if self._on_stop is None:
                    os._exit(0)  # nothing was begun
                self._on_stop(now=word == wire.NOW, patiently=word == wire.RETIRE)
        # The supervisor is gone without a word. On Linux the kernel is quicker than this.
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends: no job may go on with nobody to watch it."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before we could ask
        os._exit(1)
