"""How much one caller may ask: requests a second, bytes and depth of a body."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from rota._core.payload import problem
from rota.web.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

BODY = 1_048_576
OPEN_BODY = 4_096
"""Bytes that somebody may send whom nobody knows yet: a token, to log in."""
LONG = 65_536
"""A body of more bytes is walked through in a thread, so that nobody else waits for it."""
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
        left, wait = self._now(caller)
        self._left.pop(caller, None)
        self._left[caller] = (left - 1.0 if wait == 0.0 else left, self._clock())
        while len(self._left) > CALLERS:
            self._left.popitem(last=False)
        return wait

    def admit(self, caller: str) -> None:
        """Take one, or refuse."""
        self._refuse(self.take(caller))

    def refuse_spent(self, caller: str) -> None:
        """Refuse who has none left, and take none."""
        self._refuse(self._now(caller)[1])

    def _now(self, caller: str) -> tuple[float, float]:
        """How many there are, and the seconds until there is one."""
        now = self._clock()
        left, seen = self._left.get(caller, (float(self.burst), now))
        left = min(float(self.burst), left + (now - seen) * self.rate)
        return left, 0.0 if left >= 1.0 else (1.0 - left) / self.rate

    def _refuse(self, wait: float) -> None:
        if wait > 0.0:
            raise Problem(
                429,
                "too-many-requests",
                f"You may ask {self.rate:g} times a second, and {self.burst} times at once. Wait a moment.",
                headers={"Retry-After": str(max(1, round(wait)))},
            )


class Turns:
    """So many things at once for each caller. Forgotten when nobody has or waits for a turn."""

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._known: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, caller: str) -> asyncio.Semaphore:
        return self._known.setdefault(caller, asyncio.Semaphore(self.at_once))


def address_of(request: Request) -> str:
    """What somebody is counted by whom nobody knows. Of IPv6 it is the network: a machine has all addresses in it."""
    host = "unknown" if request.client is None else request.client.host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.version == 4 or address.ipv4_mapped is not None:
        return host
    return f"{int(address) >> 64:x}/64"


async def checked_body(request: Request, limit: int = BODY) -> None:
    """Read the body, bounded in size and time, and refuse JSON that no store could keep."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "encoded-body", "Bodies are not decompressed here. Send it as it is.")
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise _too_large(limit)
                parts.append(part)
    except TimeoutError:
        raise Problem(408, "slow-body", f"The body did not arrive within {BODY_SECONDS:g} s.") from None
    body = b"".join(parts)
    request._body = body  # noqa: SLF001 - where Starlette keeps what was read, so that the endpoint reads it again
    if len(body) > LONG:
        await asyncio.to_thread(refuse_bad_json, body)
    elif body:
        refuse_bad_json(body)


def refuse_bad_json(body: bytes) -> None:
    """Too deep, not UTF-8, NUL, NaN, half a character: refused before anything is parsed."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "not-utf-8", "The body is not UTF-8.") from error
    if "\x00" in text or text.startswith("\ufeff"):
        # Parsers take it for UTF-16, or leave the mark out: they would read another text than is looked at here.
        raise Problem(
            400, "not-utf-8", "The body is not plain UTF-8: it has NUL bytes, or a mark before its text."
        )
    try:
        trouble = problem(text, limit=BODY)
    except (ValueError, RecursionError):  # not JSON at all: the parser says where
        return
    if trouble is not None:
        raise Problem(422, "bad-json", f"The body cannot be taken: {trouble}.")


def _too_large(limit: int) -> Problem:
    return Problem(
        413, "too-large", f"The body is larger than {limit:,} bytes. Send a reference to the content."
    )
