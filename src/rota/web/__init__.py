"""Rota over HTTP, as ASGI applications: `dashboard(app)` has pages and `/api/v1`, `http_api(app)` has no pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rota.errors import ConfigError
from rota.web.binding import refuse_open_bind
from rota.web.roles import Role, User

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rota.app import Rota
    from rota.web.auth import Auth

__all__ = ["Role", "User", "dashboard", "http_api", "login_link", "refuse_open_bind"]

NEEDED = frozenset({"fastapi", "starlette", "itsdangerous", "jinja2", "markupsafe"})


def dashboard(
    app: Rota,
    *,
    auth: Auth | None = None,
    hosts: Iterable[str] | None = None,
    secret: str | None = None,
    rate: float = 20.0,
    burst: int = 40,
    name: str = "",
    read_only: bool = False,
    trace_url: str | None = None,
) -> FastAPI:
    """The dashboard of an app, with its HTTP API: `site.mount("/jobs", rota.web.dashboard(app, auth=…))`.

    All as for `http_api`. `name` is what people call this environment, such as
    production: pages show it in a colour of its own. With `read_only` nobody
    changes anything here, whatever his role. `trace_url` is where the trace of
    a job is to be seen, `https://jaeger.example/trace/{trace_id}`; the setting
    of the same name unless told.
    """
    return _built(
        app,
        auth=auth,
        hosts=hosts,
        secret=secret,
        rate=rate,
        burst=burst,
        place=name,
        read_only=read_only,
        trace_url=trace_url,
        pages=True,
    )


def http_api(
    app: Rota,
    *,
    auth: Auth | None = None,
    hosts: Iterable[str] | None = None,
    secret: str | None = None,
    rate: float = 20.0,
    burst: int = 40,
) -> FastAPI:
    """The HTTP API of an app: run it with any ASGI server, or mount it: `site.mount("/jobs", rota.web.http_api(app))`.

    Every route needs somebody with a role: a token of `rota token create`, a
    session, or whom `auth` (a function of the request, async or not) answers as
    a `User`. `hosts` are the names that it answers to: those of this machine
    unless told, and any where `auth` is given. `secret` signs sessions; without
    one they end with the process. Each caller may ask `rate` times a second.
    """
    return _built(app, auth=auth, hosts=hosts, secret=secret, rate=rate, burst=burst)


def _built(app: Rota, **options: Any) -> FastAPI:
    try:
        from rota.web.app import build
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in NEEDED:
            raise
        raise ConfigError(
            f"rota.web needs {error.name}, which comes with Rota and is missing. Install it with `pip install rota`."
        ) from error
    return build(app, **options)


def login_link(site: FastAPI, *, user: User | None = None) -> str:
    """The path of a link that logs its first visitor in, once: for whoever started the server, on his own machine.

    He is a manager of all tenants unless `user` says otherwise.
    """
    from rota.web.asking import Desk

    desk: Desk = site.state.desk
    return f"/login?key={desk.sessions.links.make(user or User('local', Role.MANAGER))}"
