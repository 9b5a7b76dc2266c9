"""Access tokens in memory."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rota._core.actions import Audit
from rota._core.token import Token, use_is_news

if TYPE_CHECKING:
    from rota.stores.memory.book import Book


def create(book: Book, token: Token, audit: Audit, now: datetime) -> None:
    if token.id not in book.tokens:
        book.tokens[token.id] = token._replace(created_at=now)
        book.tell(audit, now)


def listed(book: Book, token_id: str | None) -> list[Token]:
    found = [token for token in book.tokens.values() if token_id in (None, token.id)]
    return found[::-1]


def revoke(book: Book, token_id: str, by: str, audit: Audit, now: datetime) -> Token | None:
    token = book.tokens.get(token_id)
    if token is None or token.revoked_at is not None:
        return None
    book.tokens[token_id] = token._replace(revoked_at=now, revoked_by=by)
    book.tell(audit, now)
    return book.tokens[token_id]


def note_used(book: Book, token_id: str, now: datetime) -> None:
    token = book.tokens.get(token_id)
    if token is not None and use_is_news(token, now):
        book.tokens[token_id] = token._replace(last_used_at=now)
