"""What a dead handler leaves behind: its open connections are closed, as the kernel does, and nothing else happens."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from rota.testing.bench import Errors
from rota.testing.crash import SimulatedCrash
from rota.testing.tracing import Silence, undisturbed

PATIENCE = 1.0
"""Seconds that a dead handler may be held by others."""


@contextmanager
def dying(errors: Errors) -> Iterator[None]:
    """Run workers that may crash, and bury what is left of their handlers at the end.

    The frames of a dead handler hold whatever it had open. They are kept until
    its worker is gone and then let go all at once: connections are closed, the
    server rolls back what was not committed, and no cleanup of the user's runs.
    """
    with warnings.catch_warnings(), _unheard() as unheard:
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        if errors.dead:
            unheard.all = True
            with undisturbed():
                Silence().by_call()
                _let_go(errors.dead)


def _let_go(dead: list[BaseException]) -> None:
    """Free the frames of these. A thread that ran one holds it for a moment longer than its end is known."""
    left = [weakref.ref(crash) for crash in dead]
    dead.clear()
    end = monotonic() + PATIENCE
    gc.collect()
    while monotonic() < end and any(crash() is not None for crash in left):
        sleep(0.002)
        gc.collect()


class _Unheard:
    """Takes what generators say when they are torn down in the middle: that is nobody's business."""

    def __init__(self) -> None:
        self.all = False
        self.before = sys.unraisablehook

    def __call__(self, unraisable: Any) -> None:
        if not self.all and unraisable.exc_type is not SimulatedCrash:
            self.before(unraisable)


@contextmanager
def _unheard() -> Iterator[_Unheard]:
    hook = _Unheard()
    sys.unraisablehook = hook
    try:
        yield hook
    finally:
        sys.unraisablehook = hook.before
