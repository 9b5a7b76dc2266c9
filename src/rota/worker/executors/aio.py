"""Coroutines: begun by hand, because most of them end at once; finished inside the same asyncio Task if not."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any


@coroutine
def rest_of(begun: Coroutine[Any, Any, Any], waits_for: Any) -> Generator[Any, Any, Any]:
    """Await the rest of a coroutine that was begun with `send(None)` and answered `waits_for`.

    What it waits for is handed to the loop by the awaiting Task, so
    `asyncio.current_task()`, `asyncio.timeout()` and `Task.cancel()` work in
    the coroutine as if the Task had run it from its first line.
    """
    while True:
        try:
            yield waits_for
        except BaseException as error:  # a cancellation, most likely: it belongs to the coroutine
            try:
                waits_for = begun.throw(error)
            except StopIteration as end:
                return end.value
        else:
            return (yield from begun)
