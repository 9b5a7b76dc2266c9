"""How many searches one caller may have going at once: each may keep the store busy for seconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends

from rota.web.asking import Asked, Asking
from rota.web.problems import Problem

WAITING_SECONDS = 5.0


@asynccontextmanager
async def turn(asked: Asking) -> AsyncIterator[None]:
    """One search of whoever asks. What answers bit by bit takes one for each bit, or its reader sets the pace."""
    async with _taken(asked.desk.searches.of(asked.key)):
        yield


async def _turn(asked: Asked) -> AsyncIterator[None]:
    async with turn(asked):
        yield


SEARCHES = [Depends(_turn)]
"""`dependencies` of a route that looks for jobs: a caller's further searches wait until one of his ended."""


@asynccontextmanager
async def _taken(turns: asyncio.Semaphore) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WAITING_SECONDS):
            await turns.acquire()
    except TimeoutError:
        raise Problem(
            429,
            "searches-busy",
            "Your other searches are still looking. Wait for them, or narrow them by what has an index, or by time.",
            headers={"Retry-After": f"{WAITING_SECONDS:.0f}"},
        ) from None
    try:
        yield
    finally:
        turns.release()
