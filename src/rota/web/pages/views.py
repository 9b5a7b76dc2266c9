"""Saved views of the jobs page: a filter and its columns under a name, in a cookie of this browser alone.

The page process keeps nothing. What a cookie says is read like an address that
somebody typed: what the jobs page would not take is no view.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from starlette.responses import Response

from rota._core.filtering import FilterError, parse
from rota.web.api.jobs import FILTER
from rota.web.asking import Asked, Asking
from rota.web.pages.forms import Formed, back
from rota.web.pages.job_list import COLUMNS
from rota.web.pages.notices import Notice
from rota.web.pages.rendering import path_to
from rota.web.pages.routing import PageRoutes
from rota.web.roles import Role

routes = PageRoutes()

COOKIE = "rota_views"
YEAR = 365 * 86_400
MOST = 20
LONGEST = 40
BYTES = 3_000
"""Of the cookie's value: it travels with every request, and browsers drop what is larger than 4,096 bytes."""


class View(NamedTuple):
    """One of them."""

    name: str
    filter: str
    cols: tuple[str, ...] = ()
    """Columns by name; none: the usual ones."""

    @property
    def query(self) -> dict[str, Any]:
        """What stands in the address of the jobs page."""
        return {"filter": self.filter or None, "cols": list(self.cols) or None}


@routes.post("/views/save", verb="view_save", role=Role.VIEWER)
async def save(asked: Asked, form: Formed) -> Response:
    """Keep what the list shows under a name. A name that is taken gets the new view."""
    name = " ".join((form.text("name") or "").split())
    view = View(name, form.text("filter", most=FILTER) or "", tuple(dict.fromkeys(form.all("cols"))))
    here = path_to(asked, "page.jobs", query=view.query)
    before = saved(asked)
    views = [view if one.name == name else one for one in before]
    taken = view in views
    if not taken:
        views.append(view)
    wrong = _wrong(view, views)
    if wrong:
        return back(asked, form, Notice(wrong, good=False), to=here)
    said = (
        f"The view {name} shows this now, in place of what it showed before."
        if taken
        else f"Saved the view {name}."
    )
    response = back(asked, form, Notice(f"{said} It is kept in this browser."), to=here)
    _keep(asked, response, views)
    return response


@routes.post("/views/forget", verb="view_forget", role=Role.VIEWER)
async def forget(asked: Asked, form: Formed) -> Response:
    """Take a view away. Jobs are not touched."""
    name = form.text("name") or ""
    before = saved(asked)
    views = [one for one in before if one.name != name]
    to = path_to(asked, "page.jobs")
    if len(views) == len(before):
        return back(
            asked, form, Notice(f"No view is named {name[:LONGEST]!r} in this browser.", good=False), to=to
        )
    response = back(asked, form, Notice(f"Deleted the view {name}. No job was touched."), to=to)
    _keep(asked, response, views)
    return response


def saved(asked: Asking) -> list[View]:
    """The views of this browser, as they were saved. What is no view is passed over."""
    text = asked.request.cookies.get(COOKIE, "")
    if not 0 < len(text) <= BYTES:
        return []
    try:
        found = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        return []
    views = [view for one in (found if isinstance(found, list) else [])[:MOST] if (view := _read(one))]
    return list({view.name: view for view in views}.values())


def _read(one: Any) -> View | None:
    match one:
        case [str(name), str(wanted), list(cols)] if all(isinstance(col, str) for col in cols):
            view = View(name, wanted, tuple(cols))
            return None if _unfit(view) else view
    return None


def _unfit(view: View) -> str:
    """Why it is no view; empty: it is one."""
    if not view.name or view.name != " ".join(view.name.split()) or not view.name.isprintable():
        return "A view needs a name. Type one, then save it."
    if len(view.name) > LONGEST:
        return f"The name has {len(view.name)} characters; {LONGEST} are the most. Choose a shorter one."
    if any(col not in COLUMNS for col in view.cols):
        return "The view names a column that there is not. Choose the columns again."
    try:
        if len(view.filter) > FILTER:
            return f"The filter has {len(view.filter):,} characters; {FILTER:,} are the most."
        parse(view.filter, now=datetime.now(UTC))
    except FilterError as error:
        return f"A filter that cannot be read makes no view: {error}"
    return ""


def _wrong(view: View, views: Sequence[View]) -> str:
    """Why it cannot be saved; empty: it can."""
    if unfit := _unfit(view):
        return unfit
    if len(views) > MOST:
        return f"There are {MOST} views already, and no room for more. Delete one, then save this one."
    if len(_written(views)) > BYTES:
        return "The views are too long together for what a browser keeps. Delete one, then save this one."
    return ""


def _written(views: Sequence[View]) -> str:
    text = json.dumps(
        [[one.name, one.filter, one.cols] for one in views], separators=(",", ":"), ensure_ascii=False
    )
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _keep(asked: Asking, response: Response, views: Sequence[View]) -> None:
    if not views:
        response.delete_cookie(COOKIE, path=asked.root or "/", httponly=True, samesite="strict")
        return
    response.set_cookie(
        COOKIE,
        _written(views),
        max_age=YEAR,
        path=asked.root or "/",
        httponly=True,
        samesite="strict",
        secure=asked.request.url.scheme == "https",
    )
