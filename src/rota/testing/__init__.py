"""For tests of your own tasks: run jobs at once, by hand or for real, move time, and crash where it hurts.

`manual(app)`, `inline(app)` and `real(app)` give a `Kit`; with pytest, the
fixture `rota_testing` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.testing.crash import SimulatedCrash
    from rota.testing.drained import Drained, Ran
    from rota.testing.kit import Kit
    from rota.testing.modes import inline, manual, real
    from rota.testing.real_kit import database
    from rota.testing.survival import assert_survives_crashes, assert_survives_crashes_sync

__all__ = [
    "Drained",
    "Kit",
    "Ran",
    "SimulatedCrash",
    "assert_survives_crashes",
    "assert_survives_crashes_sync",
    "database",
    "inline",
    "manual",
    "real",
]

_HOMES = {
    "Drained": "drained",
    "Kit": "kit",
    "Ran": "drained",
    "SimulatedCrash": "crash",
    "assert_survives_crashes": "survival",
    "assert_survives_crashes_sync": "survival",
    "database": "real_kit",
    "inline": "modes",
    "manual": "modes",
    "real": "modes",
}


def __getattr__(name: str) -> Any:
    """Load the kit when it is used: every pytest run of every project with Rota imports the plugin beside it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"rota.testing.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
