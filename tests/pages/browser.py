"""A real browser on real pages: Chromium, a server on loopback, somebody logged in, and a guard over all that happens.

Playwright runs on the session's event loop, the server in a thread with a loop of its own: neither waits for the other,
and a test may block without stopping what it looks at.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from playwright.async_api import Browser, BrowserContext, Page, Request, Response, async_playwright
from starlette.applications import Starlette
from starlette.routing import Mount

import rota.web
from rota import Rota
from rota.web import Role, User

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # What would leave this machine fails at once, and is seen.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
AXE = Path(__file__).resolve().parents[2] / "node_modules/axe-core/axe.min.js"
STARTS_WITHIN = 20

# The page tells of what its policy refused. Playwright puts this in before anything of the page, past the policy.
TELL_OF_REFUSALS = """
document.addEventListener('securitypolicyviolation', event =>
    window.rotaRefused(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


def program() -> str | None:
    """Where this machine has Chromium, if it has it."""
    return shutil.which("chromium")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """One Chromium for many tests."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program(), args=FLAGS)
        yield browser
        await browser.close()


class Server:
    """The pages of an app on a free port of loopback, alone or under a prefix of another application."""

    def __init__(self, app: Rota, *, prefix: str = "", **options: Any) -> None:
        face = getattr(rota.web, "dashboard", rota.web.http_api)
        self.site = face(app, **({"rate": 1000.0, "burst": 10_000} | options))
        self.prefix = prefix
        served = Starlette(routes=[Mount(prefix, self.site)]) if prefix else self.site
        self._app = app
        self._server = uvicorn.Server(
            uvicorn.Config(
                served,
                host="127.0.0.1",
                port=0,
                log_level="warning",
                timeout_graceful_shutdown=1,
                lifespan="on",
            )
        )
        self._thread = threading.Thread(target=self._run, name="pages")
        self._failure: BaseException | None = None
        self.origin = ""

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # told to whoever waits for the start
            self._failure = error

    async def _serve(self) -> None:
        try:
            await self._server.serve()
        finally:
            await self._app.close()  # under a prefix nobody tells the inner application that it ends

    async def start(self) -> None:
        self._thread.start()
        async with asyncio.timeout(STARTS_WITHIN):
            while not self._server.started:
                if not self._thread.is_alive():
                    raise RuntimeError("the server did not start") from self._failure
                await asyncio.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.origin = f"http://127.0.0.1:{port}"

    async def stop(self) -> None:
        self._server.should_exit = True
        await asyncio.to_thread(self._thread.join)

    @property
    def base(self) -> str:
        """Where the pages begin; no slash at its end."""
        return self.origin + self.prefix

    def login(self, user: User) -> str:
        """The address of a link that logs its visitor in."""
        return self.base + rota.web.login_link(self.site, user=user)


class Guard:
    """Sees what must not happen on any page: errors, refusals of the policy, failed requests, calls to other hosts."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.seen: list[str] = []
        self.requests: list[str] = []
        self._expected: list[str] = []

    def expect(self, *parts: str) -> None:
        """What has one of these texts in it is meant to happen in this test."""
        self._expected += parts

    async def watch(self, context: BrowserContext) -> None:
        await context.expose_binding("rotaRefused", lambda _source, said: self._note("policy", said))
        await context.add_init_script(TELL_OF_REFUSALS)
        context.on("console", lambda said: self._console(said.type, said.text, said.location["url"]))
        context.on("weberror", lambda error: self._note("script", str(error.error)))
        context.on("request", self._request)
        context.on("requestfailed", self._failed)
        context.on("response", self._answered)

    def _note(self, kind: str, said: str) -> None:
        line = f"{kind}: {said}"
        if not any(part in line for part in self._expected):
            self.seen.append(line)

    def _console(self, kind: str, text: str, where: str) -> None:
        if kind in ("error", "warning"):
            self._note(f"console {kind}", f"{text} ({where})")

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)
        parts = urlsplit(request.url)
        if parts.scheme != "data" and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self._note("another host", request.url)

    def _failed(self, request: Request) -> None:
        # A page that is left drops its open streams, and htmx what became of no use.
        if request.failure not in ("net::ERR_ABORTED", None):
            self._note("failed", f"{request.method} {request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self._note("answer", f"{response.status} {response.request.method} {response.url}")

    def check(self) -> None:
        assert not self.seen, "\n".join(self.seen)


class Visitor:
    """Somebody in a browser of his own, logged in or not."""

    def __init__(self, server: Server, context: BrowserContext, page: Page, guard: Guard) -> None:
        self.server, self.context, self.page, self.guard = server, context, page, guard

    async def go(self, path: str = "/", *, status: int = 200) -> Page:
        """Open one of the pages, by its path below the prefix."""
        if status >= 400:
            self.guard.expect(f"answer: {status} ", f"status of {status}")
        answer = await self.page.goto(self.server.base + path)
        assert answer is not None
        assert answer.status == status, f"{path} answered {answer.status}: {await answer.text()}"
        return self.page


@asynccontextmanager
async def visiting(
    browser: Browser, server: Server, user: User | None = None, **options: Any
) -> AsyncIterator[Visitor]:
    """A new browser context with one page, watched; at the end nothing bad may have happened in it."""
    context = await browser.new_context(
        **({"viewport": WIDE, "locale": "en-GB", "timezone_id": "UTC"} | options)
    )
    context.set_default_timeout(10_000)
    guard = Guard(server.origin)
    try:
        await guard.watch(context)
        page = await context.new_page()
        if user is not None:
            answer = await page.goto(server.login(user))
            assert answer is not None
            assert answer.ok, f"the login link answered {answer.status}"
        yield Visitor(server, context, page, guard)
    finally:
        await context.close()
    guard.check()


def user(role: str | Role = "manager", tenant: str | None = None) -> User:
    """Somebody with this role, for one tenant or for all."""
    names = {"viewer": "vera", "operator": "otto", "manager": "mona"}
    return User(names[Role(role).value], Role(role), tenant)
