"""Sync twins of async verbs: one background event loop a process runs them all.

`verb_sync = Twin(verb)` is the whole mechanism. The loop lives in a daemon
thread that starts at the first sync call; a forked child makes its own.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from rota.errors import RotaError, TaskError

Q = ParamSpec("Q")
T = TypeVar("T")

_STOP_SECONDS = 2.0


class Portal:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="rota-portal", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.close()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine there, with the caller's context variables."""
        answer: Future[T] = Future()
        context = contextvars.copy_context()

        def start() -> None:
            task = self.loop.create_task(coroutine, context=context)
            task.add_done_callback(lambda done: _hand_over(done, answer))
            answer.add_done_callback(lambda given: self._drop(task) if given.cancelled() else None)

        self.loop.call_soon_threadsafe(start)
        return answer

    def _drop(self, task: asyncio.Task[Any]) -> None:
        if not task.done():
            self.loop.call_soon_threadsafe(task.cancel)

    def stop(self) -> None:
        """End the loop; what runs there is cancelled."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_STOP_SECONDS)


def _hand_over(done: asyncio.Task[T], answer: Future[T]) -> None:
    if done.cancelled():
        answer.cancel()
    if not answer.set_running_or_notify_cancel():
        return  # the caller has left
    error = done.exception()
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(done.result())


_lock = threading.Lock()
_portal: Portal | None = None


def portal() -> Portal:
    """The portal of this process."""
    global _portal  # noqa: PLW0603 - one a process is the point
    with _lock:
        if _portal is None or _portal.pid != os.getpid():
            _portal = Portal()
        return _portal


def running_portal() -> Portal | None:
    """The portal, if a sync verb was used in this process."""
    return _portal if _portal is not None and _portal.pid == os.getpid() else None


def _forget() -> None:
    # The parent's thread did not come along; its lock may have been held by it.
    global _lock, _portal
    _lock, _portal = threading.Lock(), None


def _shut() -> None:
    if running_portal() is not None:
        assert _portal is not None
        _portal.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
atexit.register(_shut)


def run(coroutine: Coroutine[Any, Any, T], verb: str) -> T:
    """Run a coroutine to its end from code that is not async."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        answer = portal().submit(coroutine)
        try:
            return answer.result()
        except BaseException:
            answer.cancel()  # a Ctrl-C ends the wait, so it ends what was waited for
            raise
    coroutine.close()
    raise RotaError(
        f"{verb}_sync() was called inside a running event loop, which it would block. Write `await {verb}(...)` here; "
        "from a sync function that async code calls, run that function in a thread (asyncio.to_thread)."
    )


_on_this_thread: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "rota_on_this_thread", default=None
)


def run_here(coroutine: Coroutine[Any, Any, T], verb: str) -> T:
    """Run a coroutine that never waits on the calling thread: the way of a caller's own sync connection."""
    token = _on_this_thread.set(verb)
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    finally:
        _on_this_thread.reset(token)
        coroutine.close()
    raise TaskError(
        f"{verb}_sync() had to wait on this thread, which it cannot. Write `await {verb}(...)` instead."
    )


def refuse_waiting(answer: Awaitable[Any]) -> None:
    """Raise if the caller asked for a sync verb and gave it an async connection; `answer` is not begun then."""
    verb = _on_this_thread.get()
    if verb is not None:
        if asyncio.iscoroutine(answer):
            answer.close()
        raise TaskError(
            f"{verb}_sync() got an async connection as tx. Write `await {verb}(...)` with it, or give a sync one."
        )


class Twin(Generic[Q, T]):
    """The sync form of an async method: same arguments, same answer, without the await."""

    def __init__(
        self,
        verb: Callable[Concatenate[Any, Q], Coroutine[Any, Any, T]],
        *,
        here: Callable[[Any, Mapping[str, Any]], bool] = lambda _instance, _options: False,
    ) -> None:
        self._verb = verb
        self._here = here
        """Whether a call, by its object and its named arguments, must stay on the caller's thread."""
        self.__doc__ = f"{verb.__name__}() for code that is not async. {verb.__doc__ or ''}".strip()

    @overload
    def __get__(self, instance: None, owner: type) -> Twin[Q, T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Callable[Q, T]: ...

    def __get__(self, instance: object | None, owner: type) -> Twin[Q, T] | Callable[Q, T]:
        if instance is None:
            return self
        verb, name, here = self._verb, self._verb.__name__, self._here

        def call(*args: Q.args, **kwargs: Q.kwargs) -> T:
            how = run_here if here(instance, kwargs) else run
            return how(verb(instance, *args, **kwargs), name)

        call.__name__, call.__doc__ = f"{name}_sync", self.__doc__
        return call
