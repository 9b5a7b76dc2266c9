"""What every answer carries: the id of its request, and the headers that keep browsers from doing harm."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import Response

from rota.web.problems import Problem, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("rota.web")

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
SECURITY = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # without it browsers send `Origin: null` with forms
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Headers:
    """The outermost layer. Whatever goes wrong inside ends here as an answer, not as a closed connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _given(scope) or uuid4().hex
        # A state of its own: the one of a host application around us is shared by all its requests.
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = _laid_over(message.get("headers", ()), request_id)
            await send(message)

        try:
            _refuse_nul(scope)
            await self._app(scope, receive, sending)
        except Exception as error:
            if begun:
                raise
            problem = problem_of(error)
            if problem.status_code >= 500:
                log.exception("request %s failed", request_id)
            await _answer(scope, problem, request_id)(scope, receive, sending)


def _answer(scope: Scope, problem: Problem, request_id: str) -> Response:
    """The problem as a page where a person asks for one, else as a document."""
    shown: Callable[[Request, Problem], Response | None] | None
    shown = getattr(scope["app"].state, "show", None) if "app" in scope else None
    return (shown and shown(Request(scope), problem)) or problem.response(request_id)


def _laid_over(found: Iterable[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, with ours where it says nothing itself."""
    headers = [(name.lower(), value) for name, value in found]
    said = {name for name, _ in headers}
    ours = {**SECURITY, "x-request-id": request_id}
    return headers + [
        (name.encode(), value.encode()) for name, value in ours.items() if name.encode() not in said
    ]


def _given(scope: Scope) -> str | None:
    """The id that the caller gave his request, if it can stand in a log."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text = value.decode("latin-1")
            return text if REQUEST_ID.fullmatch(text) else None
    return None


def _refuse_nul(scope: Scope) -> None:
    """No text with a NUL is anybody's name or id, and PostgreSQL takes none."""
    if "\x00" in scope["path"] or b"%00" in scope.get("query_string", b""):
        raise Problem(400, "bad-text", "The address contains a NUL character. Remove it.")
