"""Sessions of people with a browser: a signed cookie, and links that log somebody in once."""

from __future__ import annotations

import secrets
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from itsdangerous import BadData, URLSafeTimedSerializer

from rota.errors import ConfigError
from rota.web.roles import Role, User

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

COOKIE = "rota_session"
LASTS = 12 * 3600
LINK_LASTS = 600.0
LINKS = 100
SECRET = 32
"""Fewest characters of a secret: who has a cookie can try as many as he likes, at home."""
ENDED = 50_000
"""Sessions that ended here and are remembered: more than one token can open while the first of them would count."""


class Session(NamedTuple):
    """What the cookie says: who, and by which token if by one. A token is looked up at every request."""

    id: str
    user: User | None
    token_id: str | None

    @property
    def name(self) -> str:
        """Who he is, for the audit."""
        return f"token {self.token_id}" if self.user is None else self.user.name


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
        if secret is not None and len(secret) < SECRET:
            raise ConfigError(
                f"the secret that signs sessions has {len(secret)} characters, and whoever guesses it is a manager. "
                f"Give at least {SECRET} random ones, as `openssl rand -base64 48` makes them, or none: "
                "then sessions end with the process."
            )
        self.links = Links()
        self.shared = secret is not None
        """Whether other servers, and this one after a restart, believe its cookies: they must hear who logged out."""
        self._signer = URLSafeTimedSerializer(secret or secrets.token_urlsafe(48), salt="rota.web.session")
        self._notes = URLSafeTimedSerializer(self._signer.secret_keys, salt="rota.web.note")
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

    def seal(self, text: str) -> str:
        """A text that a browser keeps for us, and cannot change."""
        sealed = self._notes.dumps(text)
        return sealed if isinstance(sealed, str) else sealed.decode()

    def unseal(self, sealed: str, max_age: int) -> str | None:
        """The text, if it is ours and not too old."""
        try:
            text = self._notes.loads(sealed, max_age=max_age)
        except BadData:
            return None
        return text if isinstance(text, str) else None

    def end(self, request: Request, response: Response) -> None:
        """Log out: here at once, and in the browser. Other servers are told by `Asking.log_out`."""
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
        """`__Host-` where the browser allows it: then no other host of the domain can plant a cookie.

        Under a prefix it does not; `__Secure-` still keeps out what came without TLS.
        """
        if request.url.scheme != "https":
            return COOKIE
        return f"__Host-{COOKIE}" if _path(request) == "/" else f"__Secure-{COOKIE}"


def _path(request: Request) -> str:
    return str(request.scope.get("root_path") or "/")
