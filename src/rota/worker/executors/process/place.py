"""Where an app's code is, in words that a clean process can follow; and the following of them."""

from __future__ import annotations

import importlib
import runpy
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from rota.task import Task
from rota.worker.host import Host

MAIN = "__main__"
CHILD_MAIN = "__rota_main__"
"""What a child calls the script that the worker was started as: `if __name__ == "__main__"` must not run in it."""


class Place(NamedTuple):
    """Where a task is defined."""

    module: str
    qualname: str
    task: str


class Surroundings(NamedTuple):
    """What a child must take over of its worker before it can import the app."""

    path: tuple[str, ...]
    argv: tuple[str, ...]
    main: str | None
    """The file of the worker's script, if that defines any of the app."""
    modules: tuple[str, ...]
    """Every module that defines a task, a resource or a middleware of the app."""


def place_of(task: Task[..., Any]) -> Place | None:
    """Where a task is defined; None when a clean process could not find it there."""
    qualname = getattr(task.fn, "__qualname__", "")
    module = getattr(task.fn, "__module__", None)
    if not module or not qualname or "<" in qualname:
        return None
    if module == MAIN and _main_file() is None:
        return None
    return Place(module, qualname, task.name)


def surroundings_of(host: Host) -> Surroundings:
    """What is to be taken over for this app."""
    makers = [
        *(task.fn for task in host.tasks.values() if place_of(task) is not None),
        *(getattr(resource, "_make", None) for resource in host.resources),
        *host.middleware,
    ]
    named = dict.fromkeys(filter(None, (getattr(maker, "__module__", None) for maker in makers)))
    main = _main_file() if MAIN in named else None
    modules = tuple(name for name in named if name != MAIN)
    return Surroundings(tuple(sys.path), tuple(sys.argv), main, modules)


def take_over(around: Surroundings) -> None:
    """Import everything that defines a part of the app, as the worker did."""
    sys.path[:] = around.path
    sys.argv[:] = around.argv
    if around.main is not None:
        main = types.ModuleType(CHILD_MAIN)
        main.__dict__.update(runpy.run_path(around.main, run_name=CHILD_MAIN))
        sys.modules[MAIN] = sys.modules[CHILD_MAIN] = main
    for name in around.modules:
        importlib.import_module(name)


def find(place: Place) -> Task[..., Any]:
    """The task that is defined there."""
    module = sys.modules.get(place.module) or importlib.import_module(place.module)
    found: Any = module
    for part in place.qualname.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Task) and found.name == place.task:
        return found
    # The name may stand for the bare function, with the task elsewhere: look through the apps that are loaded.
    for tasks in _registries(list(sys.modules.values())):
        registered = tasks.get(place.task)
        if isinstance(registered, Task):
            return registered
    raise LookupError(
        f"the task {place.task!r} was not found in {place.module}.{place.qualname}. Define it at the top of a module, "
        "so that a fresh process finds it by importing that module."
    )


def _registries(modules: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for module in modules:
        for value in list(getattr(module, "__dict__", {}).values()):
            tasks = getattr(value, "__dict__", {}).get("tasks") if hasattr(value, "__dict__") else None
            if isinstance(tasks, dict):
                yield tasks


def _main_file() -> str | None:
    main = sys.modules.get(MAIN)
    file: str | None = getattr(main, "__file__", None)
    return file
