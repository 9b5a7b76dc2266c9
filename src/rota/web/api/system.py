"""What other machines ask: is it there, how does it go, what can be asked."""

from __future__ import annotations

from typing import Any, Literal

from fastapi.responses import Response
from pydantic import BaseModel

from rota.admin import Admin
from rota.contrib.prometheus import WINDOW, exposition
from rota.errors import ConfigError
from rota.web.asking import Asked
from rota.web.binding import is_loopback
from rota.web.host import bare, host_of
from rota.web.problems import Problem
from rota.web.roles import ANYONE, Role, Routes

routes = Routes("system")
versioned = Routes("system")

RELAYED = ("x-forwarded-for", "forwarded", "via", "x-real-ip")


class Health(BaseModel):
    """That the server answers. Nothing else is told to everybody."""

    status: Literal["ok"] = "ok"


@routes.get("/healthz", verb="health", role=ANYONE)
async def health() -> Health:
    """Whether the server answers."""
    return Health()


@routes.get("/metrics", verb="metrics", role=ANYONE, response_class=Response)
async def metrics(asked: Asked) -> Response:
    """Numbers for Prometheus. From another machine this needs a viewer's token for all tenants."""
    near = _is_near(asked)
    if near:
        asked.desk.buckets.admit("metrics")
    admin = Admin(asked.rota.store, actor="metrics") if near else (await asked.by_known(Role.VIEWER)).admin
    try:
        page, kind = exposition(await admin.overview(WINDOW))
    except ConfigError as error:
        raise Problem(501, "no-metrics", str(error)) from error
    return Response(page, media_type=kind)


@versioned.get("/openapi.json", verb="openapi", role=Role.VIEWER)
async def openapi(asked: Asked) -> dict[str, Any]:
    """This API, as OpenAPI 3.1."""
    described: dict[str, Any] = asked.request.app.openapi()
    return described | {"servers": [{"url": asked.root or "/"}]}


def _is_near(asked: Asked) -> bool:
    """Whether this machine asks for itself. What a proxy here passes on comes from elsewhere."""
    request = asked.request
    return (
        request.client is not None
        and is_loopback(request.client.host)
        and is_loopback(bare(host_of(request.scope) or ""))
        and not any(name in request.headers for name in RELAYED)
    )
