"""Who may do what: every route names one verb and the least role for it. A route that does not cannot be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

from rota._core.token import Role

__all__ = ["ANYONE", "Permission", "Role", "Route", "Routes", "User", "permission_of"]

F = TypeVar("F", bound=Callable[..., Any])

ANYONE = None
"""The role of a route that needs nobody in particular: is the server there, may I log in."""
MARK = "__rota_permission__"


class User(NamedTuple):
    """Somebody who asks, as a host application knows him."""

    name: str
    """For the audit: who did it."""
    role: Role = Role.VIEWER
    tenant: str | None = None
    """The only tenant whose jobs exist for him; None: all of them."""


class Permission(NamedTuple):
    """What a route does, and the least role that may ask for it."""

    verb: str
    """One word for each thing that can be done: `jobs.retry`."""
    role: Role | None


class Route(NamedTuple):
    """One line of the route table."""

    method: str
    path: str
    endpoint: Callable[..., Any]
    permission: Permission
    options: dict[str, Any]


class Routes:
    """The routes of one noun, as data; `rota.web.app` makes them answer.

    `routes = Routes("queues", "/queues")`, then above an endpoint
    `@routes.get(verb="list", role=Role.VIEWER)`.
    """

    def __init__(self, noun: str, prefix: str = "") -> None:
        self.noun, self.prefix = noun, prefix
        self._routes: list[Route] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    def get(self, path: str = "", *, verb: str, role: Role | None, **options: Any) -> Callable[[F], F]:
        return self._route("GET", path, verb, role, options)

    def post(self, path: str = "", *, verb: str, role: Role | None, **options: Any) -> Callable[[F], F]:
        return self._route("POST", path, verb, role, options)

    def put(self, path: str = "", *, verb: str, role: Role | None, **options: Any) -> Callable[[F], F]:
        return self._route("PUT", path, verb, role, options)

    def patch(self, path: str = "", *, verb: str, role: Role | None, **options: Any) -> Callable[[F], F]:
        return self._route("PATCH", path, verb, role, options)

    def delete(self, path: str = "", *, verb: str, role: Role | None, **options: Any) -> Callable[[F], F]:
        return self._route("DELETE", path, verb, role, options)

    def _route(
        self, method: str, path: str, verb: str, role: Role | None, options: dict[str, Any]
    ) -> Callable[[F], F]:
        permission = Permission(f"{self.noun}.{verb}", role)

        def add(endpoint: F) -> F:
            setattr(endpoint, MARK, permission)
            self._routes.append(Route(method, self.prefix + path, endpoint, permission, options))
            return endpoint

        return add


def permission_of(endpoint: Callable[..., Any]) -> Permission | None:
    """What was said of this endpoint; None: nothing, so nobody may have it."""
    return getattr(endpoint, MARK, None)
