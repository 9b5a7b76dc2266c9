"""Rota over HTTP: `rota.web.http_api(app)` is an ASGI application that serves `/api/v1`. Needs the extra `web`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rota.errors import ConfigError
from rota.web.binding import refuse_open_bind
from rota.web.roles import Role, User

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rota.app import Rota
    from rota.web.auth import Auth

__all__ = ["Role", "User", "http_api", "login_link", "refuse_open_bind"]

NEEDED = frozenset({"fastapi", "starlette", "itsdangerous"})


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
    try:
        from rota.web.app import build
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in NEEDED:
            raise
        raise ConfigError(
            f"the HTTP API needs {error.name}, which is not installed. Install it with `pip install 'rota[web]'`."
        ) from error
    return build(app, auth=auth, hosts=hosts, secret=secret, rate=rate, burst=burst)


def login_link(site: FastAPI, *, user: User | None = None) -> str:
    """The path of a link that logs its first visitor in, once: for whoever started the server, on his own machine.

    He is a manager of all tenants unless `user` says otherwise.
    """
    from rota.web.asking import Desk

    desk: Desk = site.state.desk
    return f"/login?key={desk.sessions.links.make(user or User('local', Role.MANAGER))}"
