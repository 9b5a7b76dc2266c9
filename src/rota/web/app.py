"""The ASGI application: the route table made to answer, with what stands before and around every route."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import version
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from rota._core.trace_link import checked_trace_url
from rota.errors import ConfigError, RotaError
from rota.web.api import table
from rota.web.asking import Desk, GuardedRoute
from rota.web.auth import Door
from rota.web.driving import drivers_of
from rota.web.headers import Headers
from rota.web.host import Hosts, allowed_hosts
from rota.web.limits import Buckets
from rota.web.problems import MEDIA_TYPE, answer
from rota.web.sessions import Sessions

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.web.auth import Auth
    from rota.web.roles import Route

ABOUT = """Durable background jobs. Every route names the least role for it (`x-rota-role`): viewer, operator, manager.

Errors are `application/problem+json`: `type` tells them apart, `detail` says what to do, `request_id` finds them in the
server's log. Jobs of other tenants do not exist for you.
"""


class ProblemDocument(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="Tells problems apart: `urn:rota:job-not-found`.")
    title: str
    status: int
    detail: str
    request_id: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {
        "description": words,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for code, words in (("4XX", "What was asked cannot be done."), ("5XX", "It failed here."))
}


def build(
    app: Rota,
    *,
    auth: Auth | None,
    hosts: Iterable[str] | None,
    secret: str | None,
    rate: float,
    burst: int,
    place: str = "",
    read_only: bool = False,
    trace_url: str | None = None,
    pages: bool = False,
) -> FastAPI:
    """The application that `rota.web.http_api` answers, or with `pages`, that `rota.web.dashboard` does."""

    @asynccontextmanager
    async def closing(_site: FastAPI) -> AsyncIterator[None]:
        # Nothing is opened here: a server whose store is away starts, says 503, and heals with the store.
        yield
        await drivers_of(site).close()
        await app.close()

    sessions = Sessions(secret)
    site = FastAPI(
        title="Rota",
        version=version("rota"),
        description=ABOUT,
        lifespan=closing,
        redirect_slashes=False,
        openapi_url=None,  # served by a route of our own, to those who may look
        docs_url=None,
        redoc_url=None,
    )
    door = Door(app, auth, sessions, read_only=read_only)
    traces = _trace_url(app, trace_url)
    site.state.desk = Desk(app, door, sessions, Buckets(rate, burst), place=place, trace_url=traces)
    for kind in (HTTPException, RequestValidationError, RotaError, TimeoutError):
        site.add_exception_handler(kind, answer)
    site.add_middleware(Hosts, hosts=allowed_hosts(hosts, guarded=auth is not None))
    site.add_middleware(Headers)  # added last: outermost
    site.router.routes.extend(_served())
    if pages:
        from rota.web.pages import page_table
        from rota.web.pages.failing import shown

        site.state.show = shown
        site.state.landing = "/"
        site.router.routes.extend(map(_made, page_table()))
    setattr(site, "openapi", lambda: _openapi(site))  # noqa: B010 - how FastAPI wants to be told
    return site


def _trace_url(app: Rota, given: str | None) -> str | None:
    """Where traces are to be seen: as it was given, else as the settings say."""
    if given is None:
        return app.settings.trace_url
    try:
        return checked_trace_url(given)
    except ValueError as error:
        raise ConfigError(f"trace_url is {given!r}, which cannot be used: {error}.") from None


@cache
def _served() -> tuple[GuardedRoute, ...]:
    """The routes, made once: they belong to no app, and find whatever they need at the desk of the site they are in."""
    return tuple(map(_made, table()))


def _made(route: Route) -> GuardedRoute:
    verb, role = route.permission
    first, _, rest = cleandoc(route.endpoint.__doc__ or verb).partition("\n")
    options: dict[str, Any] = {
        "responses": PROBLEMS | route.options.get("responses", {}),
        "summary": first.rstrip("."),
        "description": rest.strip(),
        "tags": [verb.partition(".")[0]],
        "openapi_extra": {
            "x-rota-verb": verb,
            "x-rota-role": "anyone" if role is None else role.value,
            "security": [] if role is None else [{"token": []}, {"session": []}],
        },
    } | {name: value for name, value in route.options.items() if name != "responses"}
    return GuardedRoute(
        route.path,
        route.endpoint,
        methods=[route.method],
        name=verb,
        operation_id=verb.replace(".", "_"),
        **options,
    )


def _openapi(site: FastAPI) -> dict[str, Any]:
    if site.openapi_schema is None:
        schema = get_openapi(
            title=site.title,
            version=site.version,
            description=site.description,
            routes=site.routes,
            openapi_version="3.1.0",
        )
        parts = schema.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = ProblemDocument.model_json_schema()
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "Of `rota token create`."},
            "session": {"type": "apiKey", "in": "cookie", "name": "rota_session"},
        }
        site.openapi_schema = schema
    return site.openapi_schema
