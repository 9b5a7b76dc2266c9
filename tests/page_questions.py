"""Every page of the dashboard, as a browser asks for it, beside whatever a store holds."""

from __future__ import annotations

from urllib.parse import quote
from uuid import UUID

import httpx
import psycopg

import rota.web
from rota import Rota
from rota.stores.contract import Store
from rota.web import Role, User

FILTERS = (
    "", "state:pending", "state:completed", "state:dead", "task:send_mail", "queue:default", "tenant:tenant-1",
    "tag:batch", "created>1h", "finished>1h", "state:running", "order:priority",
)  # fmt: skip
RANGES = ("15m", "1h", "6h", "24h", "7d", "30d")
TABS = ("attempts", "arguments", "result", "logs", "events", "related", "raw")


def addresses(url: str, some: dict[str, UUID]) -> list[str]:
    """The pages, about things that are in this database."""
    with psycopg.connect(url) as connection:

        def one(query: str) -> str | None:
            row = connection.execute(query).fetchone()  # type: ignore[call-overload]
            return None if row is None else str(row[0])

        group = one("SELECT fingerprint FROM rota.dead_jobs WHERE fingerprint IS NOT NULL LIMIT 1")
        worker = one("SELECT id FROM rota.sessions LIMIT 1")
        task = one("SELECT task FROM rota.dead_jobs LIMIT 1")
        queue = one("SELECT queue FROM rota.jobs LIMIT 1")
    found = [f"/?range={word}" for word in RANGES]
    found += [f"/jobs?filter={quote(words)}" for words in FILTERS]
    found += [f"/jobs/{some[name]}?tab={tab}" for name in ("finished", "dead", "waiting") for tab in TABS]
    found += ["/failures", "/failures?review=all", "/queues", "/tasks", "/workers", "/schedules", "/activity"]
    found += ["/system"]
    found += [f"/failures/{group}", f"/queues/{quote(queue or '')}", f"/tasks/{quote(task or '')}"]
    return found + ([] if worker is None else [f"/workers/{worker}"])


def browser(store: Store) -> httpx.AsyncClient:
    """A manager of all tenants who looks at the pages of this store."""
    site = rota.web.dashboard(
        Rota(store=store), auth=lambda _request: User("ann", Role.MANAGER), rate=1e6, burst=1_000_000
    )
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(site),
        base_url="http://localhost",
        headers={"accept": "text/html"},
        follow_redirects=True,
    )
