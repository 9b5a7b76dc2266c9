"""Sessions of people with a browser: a signed cookie, and links that log somebody in once."""

from __future__ import annotations

import secrets
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from itsdangerous import BadData, URLSafeTimedSerializer

from rota.web.roles import Role, User

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

COOKIE = "rota_session"
LASTS = 12 * 3600
LINK_LASTS = 600.0
LINKS = 100
ENDED = 10_000


class Session(NamedTuple):
    """What the cookie says: who, and by which token if by one. A token is looked up at every request."""

    id: str
    user: User | None
    token_id: str | None


class Links:
    """Login links: each counts once, for ten minutes, in this process."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[User, float]] = {}

    def make(self, user: User) -> str:
        while len(self._made) >= LINKS:
            del self._made[next(iter(self._made))]
        key = secrets.token_urlsafe(32)
        self._made[key] = (user, monotonic() + LINK_LASTS)
        return key

    def take(self, key: str) -> User | None:
        """Whom this link logs in; None: it was used, is too old, or was never made."""
        user, until = self._made.pop(key, (None, 0.0))
        return user if monotonic() < until else None


class Sessions:
    """Opens sessions, reads them from cookies, ends them."""

    def __init__(self, secret: str | None) -> None:
        self.links = Links()
        self._signer = URLSafeTimedSerializer(secret or secrets.token_urlsafe(48), salt="rota.web.session")
        self._ended: dict[str, None] = {}

    def open(
        self, request: Request, response: Response, *, user: User | None = None, token_id: str | None = None
    ) -> None:
        """Give the browser its cookie. Of a token, only its id is in it: whoever revokes the token ends the session."""
        said = None if user is None else [user.name, user.role.value, user.tenant]
        text = self._signer.dumps([secrets.token_urlsafe(12), said, token_id])
        response.set_cookie(
            self._name(request),
            text if isinstance(text, str) else text.decode(),
            max_age=LASTS,
            path=_path(request),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def read(self, request: Request) -> Session | None:
        text = request.cookies.get(self._name(request))
        if text is None:
            return None
        try:
            session_id, said, token_id = self._signer.loads(text, max_age=LASTS)
        except (BadData, ValueError, TypeError):
            return None
        if session_id in self._ended:
            return None
        user = None if said is None else User(said[0], Role(said[1]), said[2])
        return Session(session_id, user, token_id)

    def end(self, request: Request, response: Response) -> None:
        """Log out: here at once, and in the browser."""
        session = self.read(request)
        if session is not None:
            self._ended[session.id] = None
            while len(self._ended) > ENDED:
                del self._ended[next(iter(self._ended))]
        response.delete_cookie(
            self._name(request),
            path=_path(request),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    @staticmethod
    def _name(request: Request) -> str:
        """`__Host-` where the browser allows it: then no other host of the domain can plant a cookie."""
        return f"__Host-{COOKIE}" if request.url.scheme == "https" and _path(request) == "/" else COOKIE


def _path(request: Request) -> str:
    return str(request.scope.get("root_path") or "/")
