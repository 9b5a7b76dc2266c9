"""Coming in, going out, and how somebody likes his pages."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from starlette.responses import RedirectResponse, Response

from rota.web.asking import Asked
from rota.web.pages.forms import Formed, fitting, own_address
from rota.web.pages.rendering import THEMES, path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.problems import Problem
from rota.web.roles import ANYONE

routes = PageRoutes()

YEAR = 31_536_000
WRONG = "This token is not known here, or counts no longer. Ask a manager for a new one."


@routes.get("/enter", verb="door", role=ANYONE)
async def door(asked: Asked, next_: Annotated[str, Query(alias="next")] = "") -> Response:
    """Where somebody logs in."""
    return render(
        asked, "enter.html", title="Log in", here="", asks=True, wrong=None, next=fitting(next_) or ""
    )


@routes.post("/enter", verb="enter", role=ANYONE)
async def enter(asked: Asked, form: Formed) -> Response:
    """Open a session with a token."""
    asked.refuse_other_site()
    token = await asked.desk.door.token(asked.request, form.text("token", most=200) or "")
    if token is None:
        asked.desk.refuse_guesses(asked.request)
        come_from = form.way_back or ""
        return render(
            asked, "enter.html", title="Log in", here="", status=401, asks=True, wrong=WRONG, next=come_from
        )
    asked.desk.openings.admit(token.about)
    to = own_address(asked, form.way_back) or path_to(asked, "page.overview")
    response = RedirectResponse(to, status_code=303)
    asked.desk.sessions.open(asked.request, response, token_id=token.id)
    return response


@routes.post("/leave", verb="leave", role=ANYONE)
async def leave(asked: Asked) -> Response:
    """End the session."""
    asked.refuse_other_site()
    response = RedirectResponse(path_to(asked, "page.door"), status_code=303)
    await asked.log_out(response)
    return response


@routes.post("/prefer", verb="prefer", role=ANYONE)
async def prefer(asked: Asked, form: Formed) -> Response:
    """Keep a theme, in a cookie of this browser."""
    asked.refuse_other_site()
    theme = form.text("theme")
    if theme not in THEMES:
        raise Problem(
            422, "no-such-theme", f"There is no theme {theme!r}. Choose one of {', '.join(THEMES)}."
        )
    to = own_address(asked, form.way_back) or path_to(asked, "page.overview")
    response = RedirectResponse(to, status_code=303)
    response.set_cookie(
        "rota_theme",
        theme,
        max_age=YEAR,
        path=asked.root or "/",
        httponly=True,
        samesite="strict",
        secure=asked.request.url.scheme == "https",
    )
    return response
