"""Access tokens: who may ask, as what, and for which tenant. Pure: nothing is made or read here.

A token is shown once, when it is made. The store keeps its digest only, so that
whoever reads the store cannot use what he finds. Its form is fixed, so that leak
scanners find it in code and logs: `rota_`, its id, its secret and a check sum.
"""

from __future__ import annotations

import hmac
import re
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple
from zlib import crc32

FORM = re.compile(r"rota_(?P<id>[a-z2-7]{12})_(?P<secret>[A-Za-z0-9]{40})(?P<check>[0-9a-f]{8})")
"""What leak scanners look for. The last eight characters are the CRC-32 of all that is before them."""
NAME_LIMIT = 100
ID_LENGTH = 12
USE_NOTED_EVERY = 60.0
"""Seconds: when a token was last used is known as exactly as this, and costs no more than a write in that time."""


class Role(StrEnum):
    """What a token may do; each role may do what the ones before it may."""

    VIEWER = "viewer"  # look
    OPERATOR = "operator"  # look, and act on jobs: retry, cancel, review
    MANAGER = "manager"  # all of that, and change settings: pause, delete, tokens

    def allows(self, needed: Role) -> bool:
        """Whether this role is enough where `needed` is asked for."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


class Token(NamedTuple):
    """A token as the store knows it: all but its secret."""

    id: str
    name: str
    role: Role
    digest: str
    tenant: str | None = None
    """The only tenant whose jobs it may see; None: all of them."""
    created_by: str = ""
    created_at: datetime | None = None
    expires_at: datetime | None = None
    """None: it never ends by itself."""
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None

    @property
    def about(self) -> str:
        """How the audit calls it."""
        return f"token:{self.id}"

    def state(self, now: datetime) -> str:
        """active, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"

    def __str__(self) -> str:
        whose = "every tenant" if self.tenant is None else f"tenant {self.tenant}"
        return f"{self.role.value} of {whose}"


def text_of(token_id: str, secret: str) -> str:
    """The token as its holder sends it."""
    front = f"rota_{token_id}_{secret}"
    return f"{front}{crc32(front.encode()):08x}"


def id_in(text: str) -> str | None:
    """The id of a token that is written as tokens are; None: it never was one."""
    found = FORM.fullmatch(text)
    if found is None or text_of(found["id"], found["secret"]) != text:
        return None
    return found["id"]


def shown(text: str) -> str:
    """What may be said aloud of a text that was taken for an id: it may be a token, or most of one."""
    front = re.match(r"rota_[a-z2-7]{12}_", text)
    if front is not None:
        return f"{front[0]}***"
    return text if len(text) <= ID_LENGTH else "***"


def digest_of(text: str) -> str:
    """What the store keeps of a token. The secret has more than 200 random bits: nothing slower is needed."""
    return sha256(text.encode()).hexdigest()


_NOBODY = digest_of("rota: the token of nobody")


def is_text_of(text: str, token: Token | None) -> bool:
    """Whether `text` is this token, whether it counts or not. Takes equally long whatever is wrong with it."""
    right = hmac.compare_digest(digest_of(text), _NOBODY if token is None else token.digest)
    return right and token is not None


def accepted(text: str, token: Token | None, now: datetime) -> bool:
    """Whether `text` is this token and it still counts."""
    return is_text_of(text, token) and token is not None and token.state(now) == "active"


def use_is_news(token: Token, now: datetime) -> bool:
    """Whether it should be noted that the token is used now, or was it a moment ago anyway."""
    return token.last_used_at is None or (now - token.last_used_at).total_seconds() >= USE_NOTED_EVERY
