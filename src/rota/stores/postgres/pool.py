"""A pool whose workers end when their event loop does."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from psycopg_pool import AsyncConnectionPool

from rota.stores.postgres.prompt import PromptConnection

# It warns of each connection that we closed on purpose. That belongs into a log, if one is set up, not on the terminal
# of a command that says in a line of its own what is wrong.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class EndingPool(AsyncConnectionPool[PromptConnection]):
    """psycopg's pool, but for one thing: a worker of it that is cancelled while it connects goes away.

    psycopg's own takes the cancellation for a failed connection and waits for
    its next task. `asyncio.run()` cancels once and then waits for ever: a script
    that raised while its first enqueues were under way would never end.
    """

    @classmethod
    async def worker(cls, q: Any) -> None:
        hands = asyncio.create_task(super().worker(q))
        try:
            await asyncio.shield(hands)
        except asyncio.CancelledError:
            while not hands.done():
                hands.cancel()
                await asyncio.wait([hands], timeout=0.1)
            raise
