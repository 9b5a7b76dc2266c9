"""Crash points around calls: commits of the usual drivers, and whatever a test names."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

from rota.errors import RotaError
from rota.testing.crash import SimulatedCrash, reach, watching
from rota.testing.tracing import Silence, own

COMMITS = (
    "psycopg.Connection.commit",
    "psycopg.AsyncConnection.commit",
    "psycopg.Transaction.__exit__",
    "psycopg.AsyncTransaction.__aexit__",
    "asyncpg.transaction.Transaction.commit",
    "asyncpg.transaction.Transaction.__aexit__",
)
"""What makes work durable. Only drivers that are loaded are looked at; none is loaded for it."""
EXITS = frozenset({"__exit__", "__aexit__"})


class CannotPatch(RotaError, TypeError):
    """A name of a crash point that nothing can be put around."""


@contextmanager
def around(names: Iterable[str | Callable[..., Any]], *, commits: bool = False) -> Iterator[None]:
    """Make a crash point before and after every call of these, while a watched job makes it."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(_patched(*_found(name)))
        if commits:
            for name in COMMITS:
                loaded = _loaded(name)
                if loaded is not None:
                    stack.enter_context(_patched(*loaded))
        yield


def drivers() -> frozenset[str]:
    """The commits that are crash points now, because their driver is loaded."""
    return frozenset(name for name in COMMITS if _loaded(name) is not None)


def name_of(point: str | Callable[..., Any]) -> str:
    """What a crash point is called in reports."""
    return point if isinstance(point, str) else f"{point.__module__}.{point.__qualname__}"


def _found(point: str | Callable[..., Any]) -> tuple[Any, str, str]:
    name = name_of(point)
    if "<locals>" in name:
        raise CannotPatch(
            f"{name} is defined inside a function, so it cannot be found again to put a crash point around it. "
            "Move it to its module, or give the class it belongs to a name there."
        )
    found = _loaded(name)
    if found is None:
        raise CannotPatch(
            f"no function is found under {name!r}. Write it as package.module.function or package.module.Class.method, "
            "import its module first, or pass the function itself."
        )
    return found


def _loaded(name: str) -> tuple[Any, str, str] | None:
    """The owner of a dotted name and its last part, if its module is loaded and has it."""
    parts = name.split(".")
    for place in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:place]))
        if module is None:
            continue
        owner: Any = module
        for part in parts[place:-1]:
            owner = getattr(owner, part, None)
        if owner is not None and callable(getattr(owner, parts[-1], None)):
            return owner, parts[-1], name
        return None
    return None


@contextmanager
def _patched(owner: Any, attribute: str, name: str) -> Iterator[None]:
    mine = attribute in vars(owner)
    before = inspect.getattr_static(owner, attribute)
    kind = type(before) if isinstance(before, (staticmethod, classmethod)) else None
    function = before.__func__ if kind is not None else before
    wrapped = _with_points(function, name)
    try:
        setattr(owner, attribute, wrapped if kind is None else kind(wrapped))
    except TypeError:  # a type written in C: its callers' lines are the points then
        yield
        return
    borrowed = _borrowers(owner, before)
    for module, other in borrowed:
        setattr(module, other, wrapped)
    try:
        yield
    finally:
        for module, other in borrowed:
            setattr(module, other, before)
        if mine:
            setattr(owner, attribute, before)
        else:
            delattr(owner, attribute)


def _borrowers(owner: Any, function: Any) -> list[tuple[ModuleType, str]]:
    """Where the user's modules have a function of another module under a name of their own (`from x import f`)."""
    if not isinstance(owner, ModuleType):
        return []
    return [
        (module, name)
        for module in list(sys.modules.values())
        if isinstance(module, ModuleType)
        and module is not owner
        and own(getattr(module, "__file__", None) or "<frozen")
        for name, value in list(vars(module).items())
        if value is function
    ]


def _with_points(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def called(*args: Any, **kwargs: Any) -> Any:
            if _undoes(function, args):
                return await function(*args, **kwargs)
            _reach("before", name)
            answer = await function(*args, **kwargs)
            _reach("after", name)
            return answer

    else:

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if _undoes(function, args):
                return function(*args, **kwargs)
            _reach("before", name)
            answer = function(*args, **kwargs)
            _reach("after", name)
            return answer

    return called


def _undoes(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether this is the exit of a block that an exception left: that rolls back, and is no commit."""
    return function.__name__ in EXITS and len(args) > 1 and args[1] is not None


def _reach(kind: str, name: str) -> None:
    try:
        reach(kind, name)
    except SimulatedCrash:
        watch = watching.get()
        if watch is not None and sys.gettrace() is not None:  # this is the handler's own thread
            Silence(watch).by_call()
        raise
