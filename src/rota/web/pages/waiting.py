"""Why the first job of a queue or a task waits, asked only where the answer is near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota._core.explanation import Explanation
from rota._core.job import State
from rota.admin.numbers import COUNTED
from rota.stores.contract import Count
from rota.web.asking import Asking
from rota.web.pages.charting import known

FEW = 20_000
RARE = 100
"""Of more waiting jobs than few, one of a hundredth of them is not looked for: the others come first."""


class Waits(NamedTuple):
    """What keeps the first job, as far as it was asked."""

    why: Explanation | None
    """None: nothing waits, or it was not asked."""
    far: bool = False
    """True: it was not asked, because too many others wait before it."""


async def first_waits(
    asked: Asking, counts: Sequence[Count] | None, *, queue: str | None = None, task: str | None = None
) -> Waits:
    """Why the oldest waiting job is not running; `counts` are those of `overview` or `stats`, None where unknown."""
    pending = [count for count in counts or () if count.state is State.PENDING]
    whole = sum(count.jobs for count in pending)
    mine = sum(count.jobs for count in pending if queue in (None, count.queue) and task in (None, count.task))
    if counts is not None:
        if not mine and whole < COUNTED:
            return Waits(None)
        if whole > FEW and mine < whole / RARE:
            return Waits(None, far=True)
    return Waits(await known(asked.admin.explain_first(queue=queue, task=task)))
