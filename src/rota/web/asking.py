"""One request of one caller: what an endpoint gets to work with, and what stands before every endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from rota._core.origin import acting_from
from rota.admin import Admin
from rota.errors import ConfigError, RotaError
from rota.web.auth import Caller, Door, comes_from_elsewhere, refuse_foreign_site
from rota.web.feed import Feed
from rota.web.limits import BODY, OPEN_BODY, Buckets, Turns, address_of, checked_body
from rota.web.problems import Problem, Unknown, request_id_of
from rota.web.recently import Recently
from rota.web.roles import Role, User, permission_of

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.web.sessions import Sessions

log = logging.getLogger("rota.web")

PATIENCE = 30.0
"""Seconds that one request may take; streams begin within them."""


class Desk:
    """What all requests share."""

    def __init__(
        self,
        rota: Rota,
        door: Door,
        sessions: Sessions,
        buckets: Buckets,
        *,
        place: str = "",
        trace_url: str | None = None,
    ) -> None:
        self.rota, self.door, self.sessions, self.buckets = rota, door, sessions, buckets
        self.place = place
        """What people call this environment: production, staging."""
        self.trace_url = trace_url
        """Where the trace of a job is to be seen, with a place for its id; None: nobody said."""
        self.feed = Feed(rota)
        self.recently = Recently()
        self.logins = Buckets(0.2, 5)
        """Attempts to log in that failed, for each address: one in five seconds, five at once."""
        self.openings = Buckets(1.0, 20)
        """Sessions that one token opens: each is remembered when it ends, and may leave a row in the audit."""
        self.searches = Turns(2)
        """Searches of each caller that run at once; the store has few connections for all."""
        self.strangers = Buckets(5 * buckets.rate, 5 * buckets.burst)
        """Requests of nobody in particular, for each route and address: behind a proxy many have the same."""

    def refuse_guesses(self, request: Request) -> None:
        """Who guesses has to wait, and the operator can read of it. Who knows does not, whoever guesses beside him."""
        address = address_of(request)
        self.logins.admit(address)
        # With the id that his page shows: whoever asks about it is found here.
        said = "request %s: somebody at %r tried to log in with what does not count"
        log.warning(said, request_id_of(request.scope), address)


class Asking:
    """One request: who asks, and the admin service as he may use it."""

    def __init__(self, request: Request, desk: Desk, caller: Caller | None) -> None:
        self.request, self.desk, self.rota = request, desk, desk.rota
        self._caller = caller

    @property
    def user(self) -> User:
        """Who asks. Only routes for ANYONE have none."""
        if self._caller is None:
            raise Unknown
        return self._caller.user

    @property
    def known(self) -> User | None:
        """Who asks, if it is known."""
        return None if self._caller is None else self._caller.user

    def refuse_other_site(self) -> None:
        """Nobody's page does this in the browser of somebody who only looks at it."""
        if comes_from_elsewhere(self.request):
            raise Problem(403, "foreign-site", "This was asked from a page of another site.")

    async def log_out(self, response: Response) -> None:
        """End his session, here and wherever its cookie would be believed; a replica cannot tell the others."""
        sessions = self.desk.sessions
        session = sessions.read(self.request)
        if session is not None and sessions.shared and await self.desk.door.changes.refused() is None:
            await Admin(self.rota.store, actor=session.name).log_out(session.id)
        sessions.end(self.request, response)

    async def by_known(self, role: Role) -> Asking:
        """The same request with its caller, who must have this role: for routes that are for anyone only at times."""
        return Asking(self.request, self.desk, await admitted(self.desk, self.request, role))

    @property
    def key(self) -> str:
        """What his limits are counted by."""
        return "anyone" if self._caller is None else self._caller.key

    async def still_known(self) -> bool:
        """Whether he who asked a while ago would be let in as the same now."""
        try:
            caller = await self.desk.door.caller(self.request)
        except (RotaError, Problem):
            return False
        return caller is not None and caller.user == self.user

    async def still_counts(self) -> bool:
        """Whether what he began may go on. Who logs out lets it; a token that is revoked or expires does not."""
        return await self.desk.door.still_counts(self.key)

    @property
    def tenant(self) -> str | None:
        """The only tenant that exists for him; None: all do."""
        return self.user.tenant

    @cached_property
    def admin(self) -> Admin:
        """The admin service in his name, and for his tenant alone."""
        return Admin(self.rota.store, actor=self.user.name, tenant=self.user.tenant)

    def may(self, role: Role) -> bool:
        return self.user.role.allows(role)

    def url(self, verb: str, **path: object) -> str:
        """The address of another route, such as `jobs.show`, under whatever prefix we are mounted."""
        found = self.request.app.url_path_for(verb, **path)
        return str(self.request.url.replace(path=f"{self.root}{found}", query="", fragment=""))

    @property
    def root(self) -> str:
        """The prefix that we are mounted under."""
        return str(self.request.scope.get("root_path", "")).rstrip("/")


class GuardedRoute(APIRoute):
    """A route that looks who asks before it reads a byte of what is asked. One that names no role cannot be made."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner, permission = super().get_route_handler(), permission_of(self.endpoint)
        if permission is None:
            raise ConfigError(
                f"the route {self.path} does not say who may use it. Make it with rota.web.roles.Routes, "
                "which asks for a verb and a role."
            )
        verb, needed = permission
        has_body, limit = self.body_field is not None, OPEN_BODY if needed is None else BODY

        async def guarded(request: Request) -> Response:
            desk: Desk = request.app.state.desk
            async with asyncio.timeout(PATIENCE):
                caller = None
                if needed is None:
                    desk.strangers.admit(f"{verb} {address_of(request)}")
                else:
                    caller = await admitted(desk, request, needed)
                request.state.asking = Asking(request, desk, caller)
                if has_body:  # else nobody reads it, whatever was sent
                    await checked_body(request, limit)
                with acting_from(origin_of(request)):
                    return await inner(request)

        return guarded


async def admitted(desk: Desk, request: Request, needed: Role) -> Caller:
    """Who asks, if he may: known, of a sufficient role, not too often, and not from somebody else's page."""
    caller = await desk.door.caller(request)
    if caller is None:
        raise Unknown
    desk.buckets.admit(caller.key)
    refuse_foreign_site(request, caller)
    if not caller.user.role.allows(needed):
        if caller.withheld is not None:
            raise Problem(403, "read-only", f"Nothing can be changed here now: {caller.withheld}.")
        raise Problem(
            403,
            "role-too-low",
            f"This needs the role {needed.value}, and yours is {caller.user.role.value}.",
            needed=needed.value,
        )
    return caller


def origin_of(request: Request) -> str:
    """Where a request comes from, as the audit tells it: its address, and its id in the log."""
    host = "an unknown address" if request.client is None else request.client.host
    return f"{host}, request {request.state.request_id}"


def asking(request: Request) -> Asking:
    found: Asking = request.state.asking
    return found


Asked = Annotated[Asking, Depends(asking)]
