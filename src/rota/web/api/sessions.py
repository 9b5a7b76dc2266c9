"""Logging in and out, for people with a browser. Programs send their token with every request."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, Field

from rota.web.api.shapes import Sent
from rota.web.asking import Asked
from rota.web.binding import is_loopback
from rota.web.problems import Problem, Unknown
from rota.web.roles import ANYONE, Role, Routes

routes = Routes("session", "/session")
links = Routes("session")

LANDING = "/api/v1/session"
"""Where a login link leads, on a server without pages."""


class Login(Sent):
    """A token that opens a session."""

    token: str = Field(max_length=200)


class Who(BaseModel):
    """Who asks, as the server sees him."""

    name: str
    role: Role
    tenant: str | None = Field(description="The only tenant whose jobs exist for him; null: all.")


@routes.get(verb="show", role=Role.VIEWER)
async def show(asked: Asked) -> Who:
    """Who you are here."""
    return Who(**asked.user._asdict())


@routes.post(verb="open", role=ANYONE)
async def log_in(asked: Asked, login: Login, response: Response) -> Who:
    """Open a session with a token. It ends after twelve hours, or with the token."""
    asked.refuse_other_site()
    token = await asked.desk.door.token(asked.request, login.token)
    if token is None:
        asked.desk.refuse_guesses(asked.request)
        raise Unknown
    asked.desk.openings.admit(token.about)
    asked.desk.sessions.open(asked.request, response, token_id=token.id)
    return Who(name=token.name, role=token.role, tenant=token.tenant)


@routes.delete(verb="end", role=ANYONE, status_code=204, response_class=Response)
async def log_out(asked: Asked) -> Response:
    """End the session."""
    asked.refuse_other_site()
    response = Response(status_code=204)
    await asked.log_out(response)
    return response


@links.get("/login", verb="link", role=ANYONE, response_class=Response, include_in_schema=False)
async def by_link(asked: Asked, key: Annotated[str, Query(max_length=100)]) -> Response:
    """Follow a login link: it counts once, on this machine."""
    client = asked.request.client
    near = client is not None and is_loopback(client.host)
    user = asked.desk.sessions.links.take(key) if near else None
    if user is None:
        asked.desk.refuse_guesses(asked.request)
        raise Problem(
            401,
            "link-used",
            "This link was used before, is too old, or is not for you. Start again for a new one.",
        )
    landing = getattr(asked.request.app.state, "landing", LANDING)
    response = RedirectResponse(f"{asked.root}{landing}", status_code=303)
    asked.desk.sessions.open(asked.request, response, user=user)
    return response
