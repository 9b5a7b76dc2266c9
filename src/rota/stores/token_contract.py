"""The promises of a store about access tokens. Conformance tests quote the docstrings."""

from __future__ import annotations

from typing import Protocol

from rota._core.actions import Audit
from rota._core.token import Token


class Tokens(Protocol):
    """What every store promises of tokens. Their texts never reach a store, only what proves them."""

    async def create_token(self, token: Token, audit: Audit) -> None:
        """Store a new token, with its audit: both or neither. Repeating it changes nothing."""
        ...

    async def tokens(self, *, token_id: str | None = None) -> list[Token]:
        """Every token, those that count no more included, newest first; or the one with this id."""
        ...

    async def revoke_token(self, token_id: str, by: str, audit: Audit) -> Token | None:
        """Let a token count no more, at once and for good, with its audit; None: there is none, or it is revoked.

        Of two who revoke it, one does, and the audit has one row.
        """
        ...

    async def note_token_used(self, token_id: str) -> None:
        """Remember that a token is used now, unless that was noted within the last minute."""
        ...
