"""Resource: something handlers share for the life of a worker process, such as a database pool or a mailer."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from rota.errors import NotInJob, TaskError

T = TypeVar("T")

_CLOSED: Any = object()


class Resource(Generic[T]):
    """Made once a process by a worker, in the order of definition; call it inside a job to get the live value.

    The function is an async generator that yields the value once and cleans up
    after, or an async function that returns it. It may call resources that
    were defined before it.
    """

    def __init__(self, make: Callable[[], AsyncIterator[T]] | Callable[[], Awaitable[T]]) -> None:
        if not (inspect.isasyncgenfunction(make) or inspect.iscoroutinefunction(make)):
            name = getattr(make, "__name__", repr(make))
            raise TaskError(
                f"the resource {name} must be an `async def` that yields its value once, or returns it."
            )
        if inspect.signature(make).parameters:
            raise TaskError(
                f"the resource {make.__name__} must take no arguments. Call other resources inside it instead."
            )
        self.name = make.__name__
        self.__doc__ = make.__doc__
        self._make: Callable[[], Any] = make
        self._value: T = _CLOSED
        self._generator: Any = None
        self._override: ContextVar[T] = ContextVar(f"rota_resource_{self.name}")

    def __call__(self) -> T:
        """The live value."""
        value: T = self._override.get(_CLOSED)
        if value is _CLOSED:
            value = self._value
        if value is _CLOSED:
            raise NotInJob(
                f"the resource {self.name!r} is not open here: workers open it for their jobs. "
                f"In a test, write `with {self.name}.replaced(value): ...`."
            )
        return value

    async def open(self) -> T:
        """Make the value. The worker calls this before the first job."""
        if self._value is not _CLOSED:
            return self._value
        if inspect.isasyncgenfunction(self._make):
            generator = self._make()
            try:
                self._value = await anext(generator)
            except StopAsyncIteration:
                raise TaskError(
                    f"the resource {self.name!r} yielded nothing; it must yield its value once."
                ) from None
            self._generator = generator
        else:
            self._value = await self._make()
        return self._value

    async def close(self) -> None:
        """Clean up. The worker calls this after the last job, in reverse order."""
        generator, self._generator, self._value = self._generator, None, _CLOSED
        if generator is None:
            return
        try:
            await anext(generator)
        except StopAsyncIteration:
            return
        await generator.aclose()
        raise TaskError(f"the resource {self.name!r} yielded twice; it must yield its value once.")

    @contextmanager
    def replaced(self, value: T) -> Iterator[T]:
        """Stand `value` in for the resource inside this block: for tests that call a task directly."""
        token = self._override.set(value)
        try:
            yield value
        finally:
            self._override.reset(token)

    def __repr__(self) -> str:
        return f"<Resource {self.name} {'closed' if self._value is _CLOSED else 'open'}>"
