"""What a person with a browser sees when something cannot be done: the same words as the API, on a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from rota.web.asking import Asking, Desk
from rota.web.pages.forms import fitting
from rota.web.pages.rendering import path_to, render
from rota.web.problems import Problem, request_id_of

if TYPE_CHECKING:
    from starlette.requests import Request

HEADINGS = {
    401: "Log in",
    403: "Not allowed",
    404: "Not here",
    409: "It has changed",
    413: "Too large",
    422: "That does not fit",
    429: "Too fast",
    501: "Not built in",
    503: "The store is away",
}


def shown(request: Request, problem: Problem) -> Response | None:
    """The problem as a page, if a person asks with a browser; programs ask under /api and get a document."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    if path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
        return None
    return _page(request, problem)


def _page(request: Request, problem: Problem) -> Response:
    """The problem as a page; whom nobody knows is led to the door, and back from there."""
    desk: Desk = request.app.state.desk
    asked: Asking = getattr(request.state, "asking", None) or Asking(request, desk, None)
    if problem.status_code == 401 and problem.kind == "unauthenticated":
        come_from = request.url.path if request.method == "GET" else None
        if come_from and request.url.query:
            come_from += f"?{request.url.query}"
        door = path_to(asked, "page.door", query={"next": fitting(come_from)})
        led = RedirectResponse(door, status_code=303)
        if request.headers.get("hx-request") != "true":
            return led
        # A page that updates itself would follow to the door unseen, and lay that over its content: it has to leave.
        return Response(
            status_code=401, headers={**(problem.headers or {}), "HX-Redirect": led.headers["location"]}
        )
    heading = HEADINGS.get(problem.status_code, "Something went wrong")
    template = "enter.html" if asked.known is None else "error.html"
    response = render(
        asked,
        template,
        title=heading,
        here="",
        status=problem.status_code,
        heading=heading,
        detail=_told(problem),
        request_id=request_id_of(request.scope),
        back=request.headers.get("referer", "") if _own(request) else path_to(asked, "page.overview"),
        asks=False,
        wrong=None,
    )
    for name, value in (problem.headers or {}).items():
        response.headers[name] = value
    return response


def _told(problem: Problem) -> str:
    """Its words; of what does not fit, where and why: a person has no document to look into."""
    places = problem.more.get("errors")
    if not places:
        return str(problem.detail)
    return " ".join(f"{place['where']}: {place['what']}." for place in places)


def _own(request: Request) -> bool:
    """Whether the page that led here is one of ours."""
    return request.headers.get("sec-fetch-site") == "same-origin" and "referer" in request.headers
