"""What is told once, on the page that follows an action: a signed cookie that its reader takes away."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from starlette.responses import Response

    from rota.web.asking import Asking

COOKIE = "rota_notice"
LASTS = 60
LONGEST = 600
BYTES = 3_500
"""Of the cookie's value: browsers drop cookies of more than 4,096 bytes, with their names and options."""


class Notice(NamedTuple):
    """One sentence, and how a person takes the action back."""

    text: str
    good: bool = True
    link: str | None = None
    """Where more is to be seen."""
    undo: str | None = None
    """The address of the form that undoes it."""


def give(asked: Asking, response: Response, notice: Notice) -> None:
    """Let the next page say this."""
    response.set_cookie(
        COOKIE,
        _sealed(asked, notice),
        max_age=LASTS,
        path=asked.root or "/",
        httponly=True,
        samesite="strict",
        secure=asked.request.url.scheme == "https",
    )


def _sealed(asked: Asking, notice: Notice) -> str:
    """As much of it as a browser keeps: what was done matters more than where it leads."""
    whole = notice._replace(text=notice.text[:LONGEST])
    for told in (whole, whole._replace(undo=None), whole._replace(undo=None, link=None)):
        sealed = asked.desk.sessions.seal(json.dumps(told, ensure_ascii=False))
        if len(sealed) <= BYTES:
            break
    return sealed


def taken(asked: Asking, response: Response) -> Notice | None:
    """What there is to say, once."""
    sealed = asked.request.cookies.get(COOKIE)
    if sealed is None:
        return None
    response.delete_cookie(COOKIE, path=asked.root or "/", httponly=True, samesite="strict")
    text = asked.desk.sessions.unseal(sealed, LASTS)
    try:
        return None if text is None else Notice(*json.loads(text))
    except (ValueError, TypeError):
        return None
