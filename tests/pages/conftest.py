"""The pages in Chromium: a server of its own for each test, and one browser for all of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql
from seeding import freshen, seed, shop_app

from rota import Rota
from servers import with_database

if TYPE_CHECKING:
    from browser import Server, Visitor
    from playwright.async_api import Browser
    from stage import Stage

HERE = Path(__file__).parent
Visit: TypeAlias = "Callable[..., Awaitable[Visitor]]"
Serve: TypeAlias = "Callable[..., Awaitable[Server]]"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs Chromium is marked, and all of it runs on one event loop: that of the browser.

    So is what needs the shop's day, which takes seconds to seed.
    """
    for item in items:
        if item.path.is_relative_to(HERE) and "lively_template" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        if item.path.is_relative_to(HERE) and "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
            if pytest_asyncio.is_async_test(item):
                item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """One browser for the whole run. A developer's machine may have none; CI must."""
    import browser

    if browser.program() is None and os.environ.get("CI") != "true":
        pytest.skip("there is no chromium here. On Debian: apt-get install chromium (scripts/system.sh does)")
    async with browser.chromium() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def serve() -> AsyncIterator[Serve]:
    """Serve the pages of an app: `server = await serve(app, prefix="/a/b")`."""
    from browser import Server

    async with AsyncExitStack() as stack:

        async def start(app: Rota, **options: Any) -> Server:
            server = Server(app, **options)
            await server.start()
            stack.push_async_callback(server.stop)
            return server

        yield start


@pytest_asyncio.fixture(loop_scope="session")
async def visit(chromium: Browser, serve: Serve) -> AsyncIterator[Visit]:
    """Send somebody to a server: `vera = await visit(server, "viewer")`; at the end, all went well on every page."""
    from browser import user, visiting

    async with AsyncExitStack() as stack:

        async def send(
            server: Server, role: str | None = "manager", tenant: str | None = None, **options: Any
        ) -> Visitor:
            who = None if role is None else user(role, tenant)
            return await stack.enter_async_context(visiting(chromium, server, who, **options))

        yield send


@pytest.fixture(scope="session")
def lively_template(cluster: str, administrator: psycopg.Connection, template: str) -> str:
    """A database with a day of the shop in it, seeded once; every test gets a copy of it."""
    name = "rota_lively_template"
    administrator.execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    )
    with ThreadPoolExecutor(1) as elsewhere:  # a loop of its own, whatever loop the test has
        elsewhere.submit(lambda: asyncio.run(seed(with_database(cluster, name)))).result()
    return name


@pytest.fixture
def lively_database(cluster: str, administrator: psycopg.Connection, lively_template: str) -> Iterator[str]:
    """The address of a database in which the shop is at work."""
    name = f"lively_{uuid4().hex[:12]}"
    administrator.execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(lively_template)
        )
    )
    freshen(with_database(cluster, name))
    yield with_database(cluster, name)
    administrator.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def lively_app(lively_database: str) -> Rota:
    """The shop's app on a store of its own."""
    return shop_app(url=lively_database)


@pytest_asyncio.fixture(loop_scope="session")
async def stage(fresh_database: str, serve: Serve) -> AsyncIterator[Stage]:
    """A small app of its own for the test, served."""
    from stage import Stage, small_app

    found = Stage(fresh_database, await serve(small_app(fresh_database), name="stage"))
    yield found
    await found.close()


@pytest_asyncio.fixture(loop_scope="session")
async def shop(lively_app: Rota, serve: Serve) -> Server:
    """The shop's pages, served."""
    return await serve(lively_app, name="production")
