"""Who asks: a token, a session, or somebody the host application knows. Nobody else gets past the door."""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from rota._core.token import digest_of, id_in
from rota.admin import Admin
from rota.web.changes import Changes
from rota.web.host import host_of
from rota.web.limits import Buckets, address_of
from rota.web.problems import Problem
from rota.web.roles import Role, User

if TYPE_CHECKING:
    from rota._core.token import Token
    from rota.app import Rota
    from rota.web.sessions import Session, Sessions

Auth: TypeAlias = Callable[[Request], User | Awaitable[User | None] | None]
"""What a host application gives: the user of a request, or None for nobody."""

OURS = "rota_"
WRONG_TOKENS = (10.0, 50)
"""So many wrong tokens a second, and at once, are looked up for each address."""
FAMILIAR = 10_000
STARTED_SO = "this dashboard was started to show only"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Caller(NamedTuple):
    """Somebody who may ask, and how he is told from others."""

    user: User
    key: str
    """What his limits are counted by."""
    by_token: bool
    """Whether he showed a token, which no browser sends by itself."""
    withheld: str | None = None
    """Why he may not do now what his role allows; None: he may."""


class Door:
    """Finds out who asks."""

    def __init__(self, rota: Rota, auth: Auth | None, sessions: Sessions, *, read_only: bool = False) -> None:
        self._rota, self._auth, self._sessions = rota, auth, sessions
        self._read_only = read_only
        self.changes = Changes(rota)
        self._wrong = Buckets(*WRONG_TOKENS)
        self._familiar: OrderedDict[str, None] = OrderedDict()

    async def caller(self, request: Request) -> Caller | None:
        """Who asks, with no more than a viewer's role where nobody is to change anything; None: nobody who counts."""
        found, refused = await asyncio.gather(self._caller(request), self.changes.refused())
        if found is None or found.user.role is Role.VIEWER or not (self._read_only or refused):
            return found
        return found._replace(user=found.user._replace(role=Role.VIEWER), withheld=refused or STARTED_SO)

    @property
    def only_shows(self) -> str | None:
        """Why nobody changes anything here, as it was known a moment ago; None: whoever may does."""
        return self.changes.refusal or (STARTED_SO if self._read_only else None)

    async def _caller(self, request: Request) -> Caller | None:
        """A token that was shown decides alone, whatever else is there."""
        text = bearer(request)
        if text is not None and text.startswith(OURS):
            token = await self.token(request, text)
            return None if token is None else _of(token, by_token=True)
        session = await self._session(request)
        if session is not None and session.token_id is not None:
            token = await Admin(self._rota.store, actor="api").token_that_counts(session.token_id)
            if token is not None:
                return _of(token, by_token=False)
        elif session is not None and session.user is not None:
            return Caller(session.user, f"session:{session.id}", by_token=False)
        return await self._known_to_host(request)

    async def _session(self, request: Request) -> Session | None:
        """The session of a cookie, if it was not ended, on whatever server that was."""
        session = self._sessions.read(request)
        if session is None or not self._sessions.shared:
            return session
        ended = await Admin(self._rota.store, actor="api").has_logged_out(session.id)
        return None if ended else session

    async def still_counts(self, key: str) -> bool:
        """Whether the token that somebody came by, as his limits are counted, still counts; others need none."""
        kind, _, token_id = key.partition(":")
        if kind != "token":
            return True
        return await Admin(self._rota.store, actor="api").token_that_counts(token_id) is not None

    async def token(self, request: Request, text: str) -> Token | None:
        """The token that this text is, if it counts now.

        Strangers cost the store no more than so much: what is not written as
        tokens are is not looked up, and an address that tried many wrong ones
        has to wait. Tokens that counted before are looked up all the same, so
        that one who guesses behind a proxy keeps no user of it out.
        """
        if id_in(text) is None:
            return None
        digest, address = digest_of(text), address_of(request)
        if digest not in self._familiar:
            self._wrong.refuse_spent(address)
        noting = self.changes.refusal is None
        token = await Admin(self._rota.store, actor="api").check_token(text, noting=noting)
        self._familiar.pop(digest, None)
        if token is None:
            self._wrong.take(address)
            return None
        self._familiar[digest] = None
        while len(self._familiar) > FAMILIAR:
            self._familiar.popitem(last=False)
        return token

    async def _known_to_host(self, request: Request) -> Caller | None:
        if self._auth is None:
            return None
        found = (
            self._auth(request)
            if inspect.iscoroutinefunction(self._auth)
            else await run_in_threadpool(self._auth, request)  # it may ask a database of its own
        )
        user = await found if inspect.isawaitable(found) else found
        if user is None:
            return None
        if not isinstance(user, User):
            raise TypeError(f"auth must answer a rota.web.User or None, not {user!r}")
        return Caller(user, f"user:{user.tenant}:{user.name}", by_token=False)


def _of(token: Token, *, by_token: bool) -> Caller:
    user = User(f"{token.name} (token {token.id})", token.role, token.tenant)
    return Caller(user, token.about, by_token=by_token)


def bearer(request: Request) -> str | None:
    """The text after `Authorization: Bearer`."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if kind.lower() == "bearer" and text.strip() else None


def refuse_foreign_site(request: Request, caller: Caller) -> None:
    """A page of another site cannot make somebody's browser change anything here (CSRF).

    Browsers say where a request comes from; what says nothing and brings a
    cookie, or a password that browsers remember, is refused.
    """
    if caller.by_token or request.method in SAFE:
        return
    elsewhere = comes_from_elsewhere(request)
    if elsewhere is None:
        elsewhere = "cookie" in request.headers or bearer(request) is None
    if elsewhere:
        raise Problem(
            403, "foreign-site", "This was asked from a page of another site. Ask from here, or with a token."
        )


def comes_from_elsewhere(request: Request) -> bool | None:
    """Whether a page of another site asks, as browsers tell it; None: nothing is told, so it may be no browser."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site != "same-origin"
    if origin is not None:
        return not urlsplit(origin).netloc.lower() == (host_of(request.scope) or "").lower() != ""
    return None
