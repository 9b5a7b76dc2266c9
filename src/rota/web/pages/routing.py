"""The routes of pages: as those of the API, but they answer for themselves and no program's document names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from rota.web.roles import F, Role, Routes


class PageRoutes(Routes):
    """`routes = PageRoutes()`, then above an endpoint `@routes.get("/queues", verb="queues", role=Role.VIEWER)`."""

    def __init__(self) -> None:
        super().__init__("page")

    def _route(
        self, method: str, path: str, verb: str, role: Role | None, options: dict[str, Any]
    ) -> Callable[[F], F]:
        plain = {"response_class": Response, "include_in_schema": False}
        return super()._route(method, path, verb, role, plain | options)
