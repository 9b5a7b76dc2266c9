"""Serving the pages from a process of ours: `rota dashboard`, `rota dev` and `rota demo`."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from rota.errors import ConfigError
from rota.web import login_link
from rota.web.patience import Patient

HOST = "127.0.0.1"
PORT = 8484
TRIED = 20
"""So many ports after the first are tried where nobody named one."""
GRACE = 2
"""Seconds that requests have to end after Ctrl-C; streams of open pages never do by themselves."""


class Quiet(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Served:
    """A site that answers on a port of this process, and leaves signals to whoever serves it."""

    def __init__(
        self, site: FastAPI, bound: socket.socket, prefix: str = "", *, proxy: str | None = None
    ) -> None:
        self.site, self.prefix, self._bound = site, prefix, bound
        self._address = bound.getsockname()[:2]
        self._server = Quiet(
            uvicorn.Config(
                Below(site, prefix) if prefix else site,
                http=Patient,
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=proxy is not None,
                forwarded_allow_ips=proxy,
                server_header=False,
                timeout_graceful_shutdown=GRACE,
            )
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        host, port = self._address
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}{self.prefix}"

    def link(self) -> str:
        """The address of a page that logs its first visitor in."""
        return f"{self.address}{login_link(self.site)}"

    async def start(self) -> None:
        """Return when it answers."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._bound]), name="rota dashboard")
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise ConfigError(f"the dashboard could not start on {self.address}; the log says why.")
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await asyncio.wait([self._task])


class Below:
    """A site below a path, whether a proxy leaves the path in the address or takes it away."""

    def __init__(self, site: FastAPI, prefix: str) -> None:
        self._site, self._prefix = site, prefix

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        if scope["type"] == "http":
            path = scope["path"]
            if path != self._prefix and not path.startswith(f"{self._prefix}/"):
                path = f"{self._prefix}{path}"
            scope = {**scope, "root_path": self._prefix, "path": path if path != self._prefix else f"{path}/"}
        await self._site(scope, receive, send)


def is_a_page(prefix: str) -> bool:
    """Whether something of ours lies at this path or below it: `Below` could not tell that from the prefix itself."""
    from rota.web.api import table
    from rota.web.pages import page_table

    asked = prefix.strip("/").split("/")
    return any(_meets(asked, route.path.strip("/").split("/")) for route in (*table(), *page_table()))


def _meets(asked: list[str], route: list[str]) -> bool:
    for one, part in zip(asked, route, strict=False):
        if part.endswith(":path}"):
            return True
        if not part.startswith("{") and part != one:
            return False
    return len(route) >= len(asked)


def bind(host: str, port: int | None) -> socket.socket:
    """A socket to listen on: the port that was named, or the first free one from 8484 on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = [port] if port is not None else [*range(PORT, PORT + TRIED), 0]
    for one in ports:
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, one))
            return bound
        except OSError as error:
            bound.close()
            if error.errno == errno.EADDRINUSE and one != ports[-1]:
                continue
            why = (
                "is used by another program; choose another port"
                if error.errno == errno.EADDRINUSE
                else str(error)
            )
            raise ConfigError(f"cannot listen on {host}:{one}: it {why}.") from error
    raise AssertionError(ports)
