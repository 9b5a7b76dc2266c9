"""The files that pages are made with. They say nothing about anybody's jobs, so that everybody may have them."""

from __future__ import annotations

from functools import cache
from mimetypes import guess_type

from starlette.responses import Response

from rota.web.pages.rendering import STATIC
from rota.web.pages.routing import PageRoutes
from rota.web.problems import Problem
from rota.web.roles import ANYONE

routes = PageRoutes()

FOR_EVER = "public, max-age=31536000, immutable"
"""Their addresses change with their contents."""


@cache
def _files() -> frozenset[str]:
    found = (path for path in STATIC.rglob("*") if path.suffix in (".css", ".js", ".svg"))
    return frozenset(path.relative_to(STATIC).as_posix() for path in found)


@routes.get("/static/{name:path}", verb="static", role=ANYONE)
async def file(name: str) -> Response:
    """A style sheet, a script, a picture."""
    if name not in _files():
        raise Problem(404, "not-found", "There is nothing at this address.")
    kind = guess_type(name)[0] or "application/octet-stream"
    return Response((STATIC / name).read_bytes(), media_type=kind, headers={"Cache-Control": FOR_EVER})
