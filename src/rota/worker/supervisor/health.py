"""The health port: three questions that platforms ask over HTTP, answered from what is known already."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from rota.errors import ConfigError, RotaError

PATIENCE = 5.0
LONGEST_REQUEST = 8_192
RELAYED = re.compile(rb"^(?:x-forwarded-for|forwarded|via|x-real-ip):", re.IGNORECASE | re.MULTILINE)
HOST = re.compile(rb"^host: *(\[[^\]\r]*\]|[^:\r]*)", re.IGNORECASE | re.MULTILINE)


class Answer(NamedTuple):
    """Yes or no, and why."""

    well: bool
    words: str


class Address(NamedTuple):
    """Where the health port listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """`8081` (this machine only), `0.0.0.0:8081` or `[::]:8081`."""
        host, _, port = str(text).strip().rpartition(":")
        if not port.isdigit() or int(port) > 65_535:
            raise ConfigError(
                f"the health port {text!r} is not understood. Write a port such as 8081, which only this machine can "
                "ask, or host:port such as 0.0.0.0:8081."
            )
        return cls(host.strip("[]") or "127.0.0.1", int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Page(NamedTuple):
    """Something to read."""

    content: bytes
    kind: str


class HealthPort:
    """Answers `GET /livez`, `/readyz` and `/startupz`: 200 or 503. Why not is told to this machine only, by its name.

    So are `pages`, which tell more, such as `/metrics`; from afar they need the token.
    """

    def __init__(
        self,
        address: Address,
        questions: Mapping[str, Callable[[], Answer]],
        pages: Mapping[str, Callable[[], Awaitable[Page]]] | None = None,
        token: str | None = None,
    ) -> None:
        self.address = address
        self._questions = questions
        self._pages, self._token = pages or {}, token
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        try:
            self._server = await asyncio.start_server(
                self._serve, self.address.host, self.address.port, limit=LONGEST_REQUEST
            )
        except OSError as error:
            raise ConfigError(
                f"the health port {self.address} cannot be opened ({error.strerror or error}). Another worker may have "
                "it; choose another with --health-port."
            ) from error
        self.address = self.address._replace(port=self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):  # somebody may hold a connection and say nothing
                    await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(
            OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
        ):
            async with asyncio.timeout(PATIENCE):
                request = await reader.readuntil(b"\r\n\r\n")
                near = _is_near(writer.get_extra_info("peername")) and _is_for_here(request)
                writer.write(await self._told(request, near=near))
                await writer.drain()
        writer.close()
        with suppress(OSError, TimeoutError):
            await writer.wait_closed()

    async def _told(self, request: bytes, *, near: bool) -> bytes:
        method, path = _asked(request)
        page = self._pages.get(path)
        if page is None or method not in ("GET", "HEAD"):
            return self._answer(request, near=near)
        if not near and not self._admits(request):
            return _response(401, "Unauthorized", "This needs the token (ROTA_METRICS_TOKEN).\n", method)
        try:
            found = await page()
        except (RotaError, TimeoutError) as error:
            words = f"{error or 'the store took too long'}\n" if near else "unknown\n"
            return _response(503, "Service Unavailable", words, method)
        return _response(200, "OK", found.content, method, found.kind)

    def _admits(self, request: bytes) -> bool:
        given = re.search(rb"^authorization: *bearer +(\S+) *\r$", request, re.IGNORECASE | re.MULTILINE)
        return (
            self._token is not None
            and given is not None
            and hmac.compare_digest(given[1], self._token.encode())
        )

    def _answer(self, request: bytes, *, near: bool) -> bytes:
        method, path = _asked(request)
        question = self._questions.get(path)
        if method not in ("GET", "HEAD"):
            return _response(405, "Method Not Allowed", "Ask with GET.\n", method)
        if question is None:
            known = ", ".join([*self._questions, *self._pages])
            return _response(404, "Not Found", f"There is nothing here. Ask {known}.\n", method)
        well, words = question()
        if well:
            return _response(200, "OK", f"{words if near else 'ok'}\n", method)
        return _response(503, "Service Unavailable", f"{words if near else 'not well'}\n", method)


def _asked(request: bytes) -> tuple[str, str]:
    method, path, *_ = [*request.split(b"\r\n", 1)[0].decode("latin-1").split(" "), "", ""]
    return method, path.partition("?")[0]


def _response(
    code: int, reason: str, body: str | bytes, method: str, kind: str = "text/plain; charset=utf-8"
) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    head = (
        f"HTTP/1.1 {code} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == "HEAD" else content)


def _is_near(peer: object) -> bool:
    """Whether this machine asks."""
    try:
        return isinstance(peer, tuple) and ipaddress.ip_address(peer[0]).is_loopback
    except ValueError:
        return False


def _is_for_here(request: bytes) -> bool:
    """Whether it is meant for this machine by a name that only it has.

    A page of a stranger, whose name was pointed at this machine while
    somebody looks at it here, comes from here too, and brings its own name.
    """
    if RELAYED.search(request):
        return False
    names = [name.decode("latin-1").strip("[] ").lower() for name in HOST.findall(request)]
    return all(name in ("", "localhost", socket.gethostname().lower()) or _is_address(name) for name in names)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
