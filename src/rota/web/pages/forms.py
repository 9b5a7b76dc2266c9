"""Plain forms: read within limits, answered by sending the browser back to where it was (POST, redirect, GET)."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends
from starlette.responses import RedirectResponse, Response

from rota.web.asking import Asked, Asking
from rota.web.limits import BODY, checked_body
from rota.web.pages.notices import Notice, give
from rota.web.problems import Problem

FIELDS = 2_000
REASON = 2_000
NEXT = 3_000
OPEN_FORM = 65_536
"""Bytes of a form from somebody whom nobody knows yet: the address in it, with a long filter, is encoded twice."""
TYPED_FROM = 1_000
"""Who acts on more jobs than this has to type their number."""


class Form:
    """What a form sent. Every value is a text."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    def text(self, name: str, *, most: int = REASON) -> str | None:
        """A value without the space around it; None: nothing was typed."""
        found = next((value.strip() for key, value in self.pairs if key == name), "")
        if len(found) > most:
            raise Problem(
                422, "too-long", f"{name} has {len(found):,} characters; at most {most:,} are kept."
            )
        return found or None

    def needed(self, name: str, *, most: int = REASON) -> str:
        found = self.text(name, most=most)
        if found is None:
            raise Problem(422, "missing", f"Nothing was filled in for {name!r}. Go back and fill it in.")
        return found

    def all(self, name: str) -> list[str]:
        """All values of a name: of ticked rows."""
        return [value for key, value in self.pairs if key == name]

    @property
    def way_back(self) -> str | None:
        """Where to go afterwards. One that is too long counts as none: it must not refuse what was done before it."""
        return fitting(next((value.strip() for key, value in self.pairs if key == "next"), None))

    @property
    def reason(self) -> str | None:
        return self.text("reason")


async def _form(asked: Asked) -> Form:
    request = asked.request
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", ""):
        raise Problem(415, "not-a-form", "This address takes a form. Programs use /api/v1.")
    await checked_body(request, OPEN_FORM if asked.known is None else BODY)
    try:
        text = (await request.body()).decode()
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS, errors="strict")
    except (ValueError, UnicodeDecodeError) as error:
        raise Problem(422, "bad-form", "This form cannot be read, or has too many fields.") from error
    if any("\x00" in part for pair in pairs for part in pair):
        raise Problem(422, "bad-text", "The form contains a NUL character. Remove it.")
    return Form(pairs)


Formed = Annotated[Form, Depends(_form)]


def back(asked: Asking, form: Form, notice: Notice, *, to: str) -> Response:
    """To the page that the form was on (its field `next`), or `to`, which then says what was done."""
    response = RedirectResponse(own_address(asked, form.way_back) or to, status_code=303)
    give(asked, response, notice)
    asked.desk.recently.forget()
    return response


def fitting(address: str | None) -> str | None:
    """An address to come back to, if it is short enough to be carried about."""
    return address if address and len(address) <= NEXT else None


def own_address(asked: Asking, address: str | None) -> str | None:
    """The address if it is one of our own: a form must not send anybody elsewhere."""
    if (
        address is None
        or not address.startswith(f"{asked.root}/")
        or address.startswith("//")
        or "\\" in address
    ):
        return None
    parts = urlsplit(address)
    if parts.scheme or parts.netloc or any(ord(letter) < 32 for letter in address):
        return None
    return address


def whole_number(text: str | None) -> int | None:
    """A number as people type it: `1,284` is 1284. None: it is none, or beyond all reason."""
    digits = (text or "").replace(",", "").replace(" ", "").rstrip("+")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else None
