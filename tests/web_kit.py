"""A web API on a store, and clients with a role and a tenant: what the tests of `rota.web` ask with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import httpx

import rota.web
from rota import Rota
from rota.admin import Admin
from rota.stores.contract import Store
from rota.web import Role

FAR = ("203.0.113.9", 40_000)
"""The address of a client on another machine."""
NEAR = ("127.0.0.1", 40_000)
HOST = "jobs.example.org"


class Site:
    """An app with two tasks, its API, and whoever asks."""

    def __init__(self, store: Store, *, pages: bool = False, **options: Any) -> None:
        self.app = Rota(store=store)
        self.store = store
        define_tasks(self.app)
        made = rota.web.dashboard if pages else rota.web.http_api
        self.asgi = made(self.app, **({"hosts": [HOST, "localhost"], "burst": 1000} | options))
        self._clients: list[httpx.AsyncClient] = []

    async def token(self, role: str | Role = "manager", tenant: str | None = None, **more: Any) -> str:
        name = f"{role} of {tenant or 'all'}"
        made = await Admin(self.store, actor="tests").create_token(
            name, role=Role(role), tenant=tenant, **more
        )
        return made.text

    async def client(self, role: str | Role = "manager", tenant: str | None = None) -> httpx.AsyncClient:
        """Somebody with a token of this role, for one tenant or for all."""
        return self.anonymous(authorization=f"Bearer {await self.token(role, tenant)}")

    def anonymous(
        self,
        *,
        address: tuple[str, int] = FAR,
        base: str = f"http://{HOST}",
        asgi: Any = None,
        **headers: str,
    ) -> httpx.AsyncClient:
        """Somebody without anything, but for these headers."""
        transport = httpx.ASGITransport(asgi or self.asgi, client=address)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        client = httpx.AsyncClient(transport=transport, base_url=base, headers=named)
        self._clients.append(client)
        return client

    async def browser(
        self, role: str | Role = "manager", tenant: str | None = None, **more: Any
    ) -> httpx.AsyncClient:
        """Somebody with a browser who has logged in: he asks for pages, from this site, with a cookie."""
        client = self.anonymous(accept="text/html", sec_fetch_site="same-origin", **more)
        answer = await client.post("/enter", data={"token": await self.token(role, tenant)})
        assert answer.status_code == 303, answer.text
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()


@asynccontextmanager
async def served(store: Store, **options: Any) -> AsyncIterator[Site]:
    site = Site(store, **options)
    try:
        yield site
    finally:
        await site.close()


class Stream:
    """An answer that comes piece by piece. A reader that does not read is `stuck`: what is sent to him waits."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.begun, self.gone = asyncio.Event(), asyncio.Event()
        self.reading = asyncio.Event()
        self.reading.set()
        self._asked = False
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            self.begun.set()
            return
        await self.reading.wait()
        if message.get("body"):
            self._pieces.put_nowait(message["body"])
        if not message.get("more_body"):
            self._pieces.put_nowait(None)

    async def next(self) -> bytes | None:
        """The next piece; None: it is over."""
        async with asyncio.timeout(10):
            return await self._pieces.get()


@asynccontextmanager
async def streamed(
    asgi: Any, path: str, headers: Any, params: dict[str, str], *, stuck: bool = False
) -> AsyncIterator[Stream]:
    """Ask for an answer that does not end by itself, which httpx cannot read without a server."""
    stream = Stream()
    if stuck:
        stream.reading.clear()
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "root_path": "", "query_string": urlencode(params).encode(),
        "headers": [(b"host", HOST.encode()), *((k.lower().encode(), v.encode()) for k, v in headers.items())],
        "client": FAR, "server": (HOST, 80),
    }  # fmt: skip
    task = asyncio.create_task(asgi(scope, stream.receive, stream.send))
    try:
        async with asyncio.timeout(10):
            await stream.begun.wait()
        yield stream
    finally:
        stream.gone.set()
        stream.reading.set()
        async with asyncio.timeout(10):
            await task


def define_tasks(app: Rota) -> None:
    @app.task(name="mail", queue="post")
    def mail(to: str, copies: int = 1, api_token: str | None = None) -> None: ...

    @app.task(name="report")
    def report(month: int) -> None: ...
