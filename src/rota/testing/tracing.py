"""Dying on a given line: the lines of a task as crash points, and a dead process's silence after one.

A process that is killed runs no `finally` and no `except`. Here the crash is
an exception, so those blocks are reached; what they would do is kept from
happening. `sys.settrace` raises on the next line of the user's code and
`sys.setprofile` on its next call. Python takes off whichever of the two has
raised, so each puts the other one on before it does. The exits of libraries'
context managers may run: they roll back and close, as a server does by itself
when its client is gone.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from rota.testing.crash import Point, SimulatedCrash, Watch, watching

if TYPE_CHECKING:
    from rota.task import Task

EXITS = frozenset({"__exit__", "__aexit__"})
_PATHS = sysconfig.get_paths()
_FOREIGN = tuple({_PATHS[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")})
_ROTA = str(Path(__file__).parents[1])


@functools.cache
def own(file: str) -> bool:
    """Whether a file is the user's: not Python's, not an installed package's, not ours."""
    return not file.startswith((*_FOREIGN, _ROTA, "<frozen", "<string>"))


class Scope:
    """The code whose lines are crash points."""

    def __init__(self, codes: Iterable[CodeType] = (), files: Iterable[str] = ()) -> None:
        self._codes, self._files = frozenset(codes), tuple(files)

    @classmethod
    def of(cls, task: Task[..., Any], within: Iterable[object] = ()) -> Scope:
        """A task's own function, and the functions, classes, modules and packages of `within`."""
        codes, files = list(_codes(inspect.unwrap(task.fn))), []
        for more in within:
            if isinstance(more, ModuleType):
                files.append(_source(more))
            else:
                codes += _codes(more)
        return cls(codes, files)

    def has(self, code: CodeType) -> bool:
        return code in self._codes or code.co_filename.startswith(self._files)

    def traced(self, fn: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
        """`fn`, whose lines in this scope are crash points wherever a watch is on."""
        if is_async:

            @functools.wraps(fn)
            async def begun(*args: Any, **kwargs: Any) -> Any:
                with self._lines():
                    return await fn(*args, **kwargs)

        else:

            @functools.wraps(fn)
            def begun(*args: Any, **kwargs: Any) -> Any:
                with self._lines():
                    return fn(*args, **kwargs)

        return begun

    @contextmanager
    def _lines(self) -> Iterator[None]:
        watch = watching.get()
        if watch is None:
            yield
            return
        watch.reach(Point("begun"))
        with undisturbed(), _abandoning(watch):
            sys.settrace(_Lines(watch, self, Silence(watch)).entered)
            yield


class _Lines:
    def __init__(self, watch: Watch, scope: Scope, silence: Silence) -> None:
        self._watch, self._scope, self._silence = watch, scope, silence

    def entered(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        return self.line if self._scope.has(frame.f_code) and watching.get() is self._watch else None

    def line(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event != "line" or watching.get() is not self._watch:
            return self.line
        file, number = frame.f_code.co_filename, frame.f_lineno
        try:
            self._watch.reach(
                Point("line", f"line {number} of {_short(file)}", linecache.getline(file, number).strip())
            )
        except SimulatedCrash:
            self._silence.by_call()
            raise
        return self.line


class Silence:
    """Keeps a dead handler from doing anything more in this thread; without a `watch`, the user's code altogether."""

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch

    def by_call(self) -> None:
        """Die again at the next call that the user's code makes."""
        sys.setprofile(self._called)

    def _concerns(self) -> bool:
        return self._watch is None or watching.get() is self._watch

    def _called(self, frame: FrameType, event: str, arg: Any) -> None:
        if event not in {"call", "c_call"} or not self._concerns():
            return
        if not (_by_user(frame) if event == "call" else _to_library(frame, arg)):
            return
        above: FrameType | None = frame
        while above is not None:
            if own(above.f_code.co_filename):
                above.f_trace = self._line
            above = above.f_back
        sys.settrace(self._line)
        raise SimulatedCrash("the process is dead")

    def _line(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if not own(frame.f_code.co_filename) or not self._concerns():
            return None
        if event in {"call", "line"}:
            sys.setprofile(self._called)
            raise SimulatedCrash("the process is dead")
        return self._line


def _by_user(frame: FrameType) -> bool:
    """Whether this new frame is the user's code, or was called by it, and is not the exit of a library's `with`."""
    if own(frame.f_code.co_filename):
        return True
    above = frame.f_back
    return above is not None and own(above.f_code.co_filename) and frame.f_code.co_name not in EXITS


def _to_library(frame: FrameType, function: Any) -> bool:
    return own(frame.f_code.co_filename) and getattr(function, "__name__", "") not in EXITS


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put back, at the end, the tracer and profiler that this thread had: coverage, a debugger, or none."""
    trace, profile = sys.gettrace(), sys.getprofile()
    try:
        yield
    finally:
        sys.settrace(trace)
        sys.setprofile(profile)


@contextmanager
def _abandoning(watch: Watch) -> Iterator[None]:
    """Let the async generators of a handler that died just go, where an event loop would run their cleanup."""
    first, last = sys.get_asyncgen_hooks()
    mine: set[int] = set()

    def begun(generator: Any) -> None:
        if watching.get() is watch:
            mine.add(id(generator))
        if first is not None:
            first(generator)

    def left(generator: Any) -> None:
        if last is not None and not (watch.crashed and id(generator) in mine):
            last(generator)

    sys.set_asyncgen_hooks(begun, left)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(first, last)


def _codes(thing: object) -> Iterator[CodeType]:
    """The code of a function, of a class's methods, and of everything defined inside them."""
    if isinstance(thing, type):
        for member in vars(thing).values():
            yield from _codes(getattr(member, "__func__", getattr(member, "fget", member)))
        return
    code = thing if isinstance(thing, CodeType) else getattr(inspect.unwrap(thing), "__code__", None)  # type: ignore[arg-type]
    if code is not None:
        yield code
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield from _codes(inner)


def _source(module: ModuleType) -> str:
    """Where the code of a module is; of a package, the directory."""
    if hasattr(module, "__path__"):
        return str(Path(next(iter(module.__path__)))) + "/"
    return str(module.__file__)


def _short(file: str) -> str:
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file
