"""The dashboard on a store, without a browser: what the quick tests of pages ask with."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

import rota.web
from rota.stores.contract import Store
from rota.web import Role
from web_kit import HOST, Site


class PageSite(Site):
    """An app with two tasks, its pages, and whoever looks at them."""

    def __init__(self, store: Store, **options: Any) -> None:
        super().__init__(store)
        defaults: dict[str, Any] = {"hosts": [HOST, "localhost"], "rate": 1000.0, "burst": 1000}
        self.asgi = rota.web.dashboard(self.app, **(defaults | options))

    async def visitor(self, role: str | Role = "manager", tenant: str | None = None) -> httpx.AsyncClient:
        """Somebody with a browser, of this role, for one tenant or for all."""
        token = await self.token(role, tenant)
        return self.anonymous(authorization=f"Bearer {token}", accept="text/html")


@asynccontextmanager
async def paged(store: Store, **options: Any) -> AsyncIterator[PageSite]:
    site = PageSite(store, **options)
    try:
        yield site
    finally:
        await site.close()


def words(answer: httpx.Response) -> str:
    """What a page says, without its tags, and with one space between any two words."""
    main = answer.text.partition('<main id="page"')[2].partition("</main>")[0] or answer.text
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


async def followed(client: httpx.AsyncClient, path: str, **form: str) -> httpx.Response:
    """Send a form, and the page that it leads to."""
    answer = await client.post(path, data=form)
    assert answer.status_code == 303, words(answer)
    return await client.get(answer.headers["location"])
