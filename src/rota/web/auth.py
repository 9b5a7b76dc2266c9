"""Who asks: a token, a session, or somebody the host application knows. Nobody else gets past the door."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from rota._core.token import digest_of, id_in
from rota.admin import Admin
from rota.web.host import host_of
from rota.web.limits import Buckets, address_of
from rota.web.problems import Problem
from rota.web.roles import User

if TYPE_CHECKING:
    from rota._core.token import Token
    from rota.app import Rota
    from rota.web.sessions import Sessions

Auth: TypeAlias = Callable[[Request], User | Awaitable[User | None] | None]
"""What a host application gives: the user of a request, or None for nobody."""

OURS = "rota_"
WRONG_TOKENS = (10.0, 50)
"""So many wrong tokens a second, and at once, are looked up for each address."""
FAMILIAR = 10_000
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Caller(NamedTuple):
    """Somebody who may ask, and how he is told from others."""

    user: User
    key: str
    """What his limits are counted by."""
    by_token: bool
    """Whether he showed a token, which no browser sends by itself."""


class Door:
    """Finds out who asks."""

    def __init__(self, rota: Rota, auth: Auth | None, sessions: Sessions) -> None:
        self._rota, self._auth, self._sessions = rota, auth, sessions
        self._wrong = Buckets(*WRONG_TOKENS)
        self._familiar: OrderedDict[str, None] = OrderedDict()

    async def caller(self, request: Request) -> Caller | None:
        """Who asks; None: nobody who counts. A token that was shown decides alone, whatever else is there."""
        text = bearer(request)
        if text is not None and text.startswith(OURS):
            token = await self.token(request, text)
            return None if token is None else _of(token, by_token=True)
        session = self._sessions.read(request)
        if session is not None and session.token_id is not None:
            [token, *_] = [*await self._rota.store.tokens(token_id=session.token_id), None]
            if token is not None and token.state(await self._rota.store.now()) == "active":
                return _of(token, by_token=False)
        elif session is not None and session.user is not None:
            return Caller(session.user, f"session:{session.id}", by_token=False)
        return await self._known_to_host(request)

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
        token = await Admin(self._rota.store, actor="api").check_token(text)
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
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        own = site == "same-origin"
    elif origin is not None:
        own = urlsplit(origin).netloc.lower() == (host_of(request.scope) or "").lower() != ""
    else:
        own = "cookie" not in request.headers and bearer(request) is not None
    if not own:
        raise Problem(
            403, "foreign-site", "This was asked from a page of another site. Ask from here, or with a token."
        )
