"""What several pages show, and many people look at: read once for all of one tenant, or for all who see everything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from rota._core.depths import Depths
from rota._core.numbers import Figures
from rota._core.series import Chart
from rota.web.asking import Asking
from rota.web.pages.spans import Range
from rota.web.recently import LASTS

T = TypeVar("T")

SAMPLED = 15.0
"""Seconds that what is looked at each minute counts, or what changes as slowly: depths, the room of tables."""


async def shared(asked: Asking, key: Hashable, read: Callable[[], Awaitable[T]], lasts: float = LASTS) -> T:
    """What `read` answers, or answered a moment ago to somebody who may see exactly the same."""
    return await asked.desk.recently.get((asked.tenant, key), read, lasts)


async def figures(asked: Asking, seconds: float) -> Figures:
    """What all workers did in the last so many seconds."""
    return await shared(asked, ("figures", seconds), lambda: asked.admin.figures(seconds))


async def series(asked: Asking, chosen: Range, *, queue: str | None = None, task: str | None = None) -> Chart:
    """The same along time, of one queue or task or of all."""
    return await shared(
        asked,
        ("series", chosen.word, queue, task),
        lambda: asked.admin.series(chosen.seconds, queue=queue, task=task),
    )


async def depths(asked: Asking, chosen: Range) -> Depths:
    """How deep the queues were."""
    return await shared(
        asked, ("depths", chosen.word), lambda: asked.admin.depths(chosen.seconds), lasts=SAMPLED
    )
