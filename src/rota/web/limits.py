"""How much one caller may ask: requests a second, bytes and depth of a body."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING

from rota._core.payload import problem
from rota.web.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

BODY = 1_048_576
BODY_SECONDS = 10.0
CALLERS = 10_000
"""So many callers are remembered; the one that was quiet longest is forgotten first."""


class Buckets:
    """So many requests a second for each caller, and `burst` of them at once."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self.rate, self.burst, self._clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Take one; 0.0, or the seconds until there is one again."""
        now = self._clock()
        left, seen = self._left.pop(caller, (float(self.burst), now))
        left = min(float(self.burst), left + (now - seen) * self.rate)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self.rate
        self._left[caller] = (left - 1.0 if wait == 0.0 else left, now)
        while len(self._left) > CALLERS:
            self._left.popitem(last=False)
        return wait

    def admit(self, caller: str) -> None:
        wait = self.take(caller)
        if wait > 0.0:
            raise Problem(
                429,
                "too-many-requests",
                f"You may ask {self.rate:g} times a second, and {self.burst} times at once. Wait a moment.",
                headers={"Retry-After": str(max(1, round(wait)))},
            )


async def checked_body(request: Request) -> None:
    """Read the body, bounded in size and time, and refuse JSON that no store could keep."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "encoded-body", "Bodies are not decompressed here. Send it as it is.")
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > BODY:
        raise _too_large()
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > BODY:
                    raise _too_large()
                parts.append(part)
    except TimeoutError:
        raise Problem(408, "slow-body", f"The body did not arrive within {BODY_SECONDS:g} s.") from None
    body = b"".join(parts)
    request._body = body  # noqa: SLF001 - where Starlette keeps what was read, so that the endpoint reads it again
    if body:
        refuse_bad_json(body)


def refuse_bad_json(body: bytes) -> None:
    """Too deep, not UTF-8, NUL, NaN, half a character: refused before anything is parsed."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "not-utf-8", "The body is not UTF-8.") from error
    try:
        trouble = problem(text, limit=BODY)
    except (ValueError, RecursionError):  # not JSON at all: the parser says where
        return
    if trouble is not None:
        raise Problem(422, "bad-json", f"The body cannot be taken: {trouble}.")


def _too_large() -> Problem:
    return Problem(
        413, "too-large", f"The body is larger than {BODY:,} bytes. Send a reference to the content."
    )
