"""What does not belong into a payload, found by the names of its parts and by what its texts look like.

Jobs carry references, not content: a password or a document in a payload is read
by everybody who may look at the queue, and lives on in its history and backups.

The patterns are written in the part of the language that Python and PostgreSQL
share: `rota.sensitive()` uses the very same ones (a test compares them).
"""

# ruff: noqa: S105 - these are patterns of secrets, not secrets

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

SECRET_NAME = (
    "(^|_)(password|passwd|passphrase|passcode|pwd|secret|secrets|token|tokens|api_?key|access_?key|private_?key"
    "|secret_?key|signing_?key|credential|credentials|authorization|auth_header|cookie|cookies|jwt)"
    "(_(hash|text|value|plain|base64|b64|[0-9]+))?$"
)
NUMBER_NAME = "(^|_)(card_?number|credit_?card|debit_?card|cvv|cvv2|cvc|ssn|social_security_number|otp)$"
CONTENT_NAME = (
    "(^|_)((e?mail|message|html|text|plain)_body|body_(html|text|plain)|(e?mail|message)_content"
    "|(document|file|attachment|page|pdf)_(content|contents|body|bytes|text|base64|b64)|raw_(e?mail|message|document))$"
)
MAYBE_CONTENT_NAME = "^(body|content|contents|html|attachment|attachments|document|file)$"
MAYBE_CONTENT_FROM = 200
"""So many characters under such a name are content; fewer may be anything."""

PRIVATE_KEY = "-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----"
JWT = r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
TOKEN = (
    "(?<![A-Za-z0-9])(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,}"
    "|xox[abprs]-[A-Za-z0-9-]{10,}|[sr]k_live_[A-Za-z0-9]{16,}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{35}"
    "|(Bearer|Basic) +[A-Za-z0-9._~+/=-]{16,})"
)
URL_PASSWORD = "://[^/@:?# ]+:[^/@?# ]+@"
CARD = "(?<![0-9A-Za-z-])[2-6]([ -]?[0-9]){12,18}(?![0-9A-Za-z-])"
CARD_BRAND = (
    "^(4([0-9]{12}|[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}|2(22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    "|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}|35(2[89]|[3-8][0-9])[0-9]{12}"
    "|(6011|65[0-9]{2}|64[4-9][0-9]|62[0-9]{2})[0-9]{12,15})$"
)
MAIL_HEADER = (
    "^(From|To|Cc|Subject|Date|Received|Return-Path|MIME-Version|Message-ID|Content-Type|DKIM-Signature): "
)
MAIL_HEADERS = 3
"""So many lines of them make a text a mail."""
DOCUMENT = (
    "^(%PDF-|JVBERi0|<!doctype html|<!DOCTYPE html|<!DOCTYPE HTML|<html|<HTML|data:[a-z]+/[^;,]+;base64,)"
)
BASE64 = "^[A-Za-z0-9+/]+={0,2}$"
BASE64_FROM = 2000

SHORTEST = 13
"""No pattern of values fits a shorter text: nearly every text of a payload is passed over by its length."""

_like = cache(re.compile)  # at first use: most processes never look at a payload
_HUMP = "([a-z0-9])([A-Z])"


class Finding(NamedTuple):
    """One part of a payload that should not be in it."""

    path: str
    """Where: `user.password`, `rows[3].note`."""
    what: str
    """What it looks like: a secret, a token, a private key, a card number, content."""

    def __str__(self) -> str:
        return f"{self.path} looks like {self.what}"


SECRET, NUMBER, CONTENT = "a secret", "a personal number", "the content of a mail or document"
KEY, A_TOKEN, A_CARD, LOGIN = "a private key", "a token", "a card number", "an address with its password"


def kind_of_name(name: str) -> str | None:
    """What a part of this name holds, if it should not be in a payload; `CONTENT` of some names only if it is long."""
    plain = _like(_HUMP).sub(r"\1_\2", name).lower().translate(_SEPARATORS)
    if _like(SECRET_NAME).search(plain):
        return SECRET
    if _like(NUMBER_NAME).search(plain):
        return NUMBER
    if _like(CONTENT_NAME).search(plain):
        return CONTENT
    return MAYBE if _like(MAYBE_CONTENT_NAME).search(plain) else None


MAYBE = "perhaps content"
_SEPARATORS = str.maketrans("- .", "___")


def kind_of_text(text: str) -> str | None:
    """What a text is by its looks, if it should not be in a payload."""
    if len(text) < SHORTEST:
        return None
    if _like(PRIVATE_KEY).search(text):
        return KEY
    if _like(JWT).search(text) or _like(TOKEN).search(text):
        return A_TOKEN
    if _like(URL_PASSWORD).search(text):
        return LOGIN
    if any(is_card(found[0]) for found in _like(CARD).finditer(text)):
        return A_CARD
    start = text[:64].lstrip()
    if _like(DOCUMENT).match(start) or len(_like(MAIL_HEADER, re.MULTILINE).findall(text)) >= MAIL_HEADERS:
        return CONTENT
    if len(text) >= BASE64_FROM and _like(BASE64).match(text.replace("\n", "").replace("\r", "")):
        return CONTENT
    return None


def is_card(text: str) -> bool:
    """Whether digits, with spaces or dashes between, are the number of a payment card: a known brand, a right sum."""
    digits = text.replace(" ", "").replace("-", "")
    if not _like(CARD_BRAND).match(digits):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def findings(
    value: Any, *, allow: Collection[str] = (), path: str = "", under: str | None = None
) -> Iterator[Finding]:
    """Everything in a JSON value that should not be in a payload. `allow` holds names and paths that may stay."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            here = f"{path}.{name}" if path else str(name)
            if name in allow or here in allow:
                continue
            yield from findings(inner, allow=allow, path=here, under=kind_of_name(str(name)) or under)
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            yield from findings(inner, allow=allow, path=f"{path}[{place}]", under=under)
    else:
        kind = kind_of_leaf(value, under)
        if kind is not None:
            yield Finding(path or "the value", kind)


def kind_of_leaf(value: Any, under: str | None) -> str | None:
    """What one value is, below a part whose name says `under`."""
    if isinstance(value, str):
        if under is not None and value.strip() and (under != MAYBE or len(value) >= MAYBE_CONTENT_FROM):
            return CONTENT if under == MAYBE else under
        return kind_of_text(value)
    if under == NUMBER and isinstance(value, int) and not isinstance(value, bool):
        return NUMBER
    return None


def suspicious(names: Collection[str]) -> bool:
    """Whether any of these names makes a payload worth a closer look."""
    return any(kind_of_name(name) is not None for name in names)
