"""End tasks for certain."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

AGAIN_AFTER = 0.5


async def end_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel these until every one has ended.

    Once is not enough: before Python 3.12 `asyncio.wait_for()` swallows a cancellation
    that comes in the moment of its answer, and a connection pool waits by it. A
    loop of ours would then go on for ever with its next round.
    """
    going = set(tasks)
    while going:
        for task in going:
            task.cancel()
        _, going = await asyncio.wait(going, timeout=AGAIN_AFTER)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, so that nobody complains that nobody did
