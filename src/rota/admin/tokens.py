"""Access tokens for people and programs that ask over HTTP: made, listed, revoked, checked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

from rota._core.actions import Audit
from rota._core.token import (
    ID_LENGTH,
    NAME_LIMIT,
    Role,
    Token,
    accepted,
    digest_of,
    id_in,
    is_text_of,
    shown,
    text_of,
    use_is_news,
)
from rota.admin.reads import Reads
from rota.errors import ConfigError, RotaError, StoreError

ID_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
SECRET_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"  # noqa: S105 - an alphabet


class NewToken(NamedTuple):
    """A token that was just made, and its text, which can never be read again."""

    token: Token
    text: str


class TokenNotFound(RotaError, LookupError):
    """No token has this id."""

    def __init__(self, token_id: str) -> None:
        super().__init__(f"no token has the id {shown(token_id)!r}. `rota token list` shows them.")


class TokenRevoked(RotaError):
    """The token was revoked before."""

    def __init__(self, token: Token) -> None:
        super().__init__(
            f"token {token.id} ({token.name}) was revoked by {token.revoked_by} at "
            f"{token.revoked_at:%Y-%m-%d %H:%M %Z}; it counts no more. `rota token create` makes another."
        )


class Tokens(Reads):
    """Who may ask. The text of a token is shown once; only its digest is kept."""

    async def create_token(
        self,
        name: str,
        *,
        role: Role = Role.VIEWER,
        tenant: str | None = None,
        lasts: float | None = None,
        reason: str | None = None,
    ) -> NewToken:
        """Make a token for `lasts` seconds (None: until it is revoked); it may do what its role says."""
        if not name.strip() or len(name) > NAME_LIMIT:
            raise ConfigError(
                f"a token's name must have 1 to {NAME_LIMIT} characters, not {len(name)}. "
                "Say who or what uses it: 'deploys of the shop'."
            )
        if tenant == "":
            raise ConfigError("a token's tenant must not be empty; leave it out for all tenants.")
        if lasts is not None and lasts <= 0:
            raise ConfigError(f"a token must last longer than {lasts:g} seconds; 90d is usual.")
        token_id = _random(ID_LETTERS, ID_LENGTH)
        text = text_of(token_id, _random(SECRET_LETTERS, 40))
        now = await self.store.now()
        token = Token(
            token_id,
            name.strip(),
            role,
            digest_of(text),
            tenant,
            self.actor,
            now,
            None if lasts is None else now + timedelta(seconds=lasts),
        )
        until = "it is revoked" if token.expires_at is None else f"{token.expires_at:%Y-%m-%d %H:%M} UTC"
        audit = Audit(
            self.actor,
            "token_created",
            None,
            reason,
            after=f"{token.name}: {token}, until {until}",
            about=token.about,
        )
        await self.store.create_token(token, audit)
        return NewToken(token, text)

    async def tokens(self) -> Sequence[Token]:
        """Every token, those that count no more included, newest first."""
        return await self.store.tokens()

    async def revoke_token(self, token_id: str, *, reason: str | None = None) -> Token:
        """Let a token count no more, at once and for good. Its own text is taken for its id."""
        wanted = id_in(token_id) or token_id
        audit = Audit(self.actor, "token_revoked", None, reason, "active", "revoked", about=f"token:{wanted}")
        revoked = await self.store.revoke_token(wanted, self.actor, audit)
        if revoked is not None:
            return revoked
        found = await self.store.tokens(token_id=wanted)
        raise TokenRevoked(found[0]) if found else TokenNotFound(token_id)

    async def token_that_counts(self, token_id: str) -> Token | None:
        """The token with this id, if it counts now: for what somebody began with it, and goes on without its text."""
        found = await self.store.tokens(token_id=token_id)
        return found[0] if found and found[0].state(await self.store.now()) == "active" else None

    async def check_token(self, text: str, *, noting: bool = True) -> Token | None:
        """The token that `text` is, if it counts now; None: it does not, and nobody is told why.

        Asks the store every time, so that a revoked token is refused at once.
        When it was last used is noted, at most once a minute, and not where the store is known to take no changes.
        """
        token_id = id_in(text)
        found = [] if token_id is None else await self.store.tokens(token_id=token_id)
        token = found[0] if found else None
        if not is_text_of(text, token):  # who only guesses costs the store no more than this look
            return None
        assert token is not None
        now = await self.store.now()
        if not accepted(text, token, now):
            return None
        if noting and use_is_news(token, now):
            with suppress(StoreError):  # a note that cannot be written keeps nobody out
                await self.store.note_token_used(token.id)
        return token


def _random(letters: str, length: int) -> str:
    import secrets

    return "".join(secrets.choice(letters) for _ in range(length))
