"""Workers: `run(app)` is a whole process; `Worker` is one inside yours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.worker.entry import run
    from rota.worker.lanes import LaneSpec, parse_lane
    from rota.worker.worker import Worker

__all__ = ["LaneSpec", "Worker", "parse_lane", "run"]

_HOMES = {"LaneSpec": "lanes", "Worker": "worker", "parse_lane": "lanes", "run": "entry"}


def __getattr__(name: str) -> Any:
    """Load the worker only when it is used: an app that only enqueues needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"rota.worker.{_HOMES[name]}"), name)
    return value
