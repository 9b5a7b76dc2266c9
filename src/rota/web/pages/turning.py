"""Lists of many pages: the address of the next one, with everything else that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

if TYPE_CHECKING:
    from rota.web.asking import Asking


def turned(asked: Asking, cursor: str | None) -> str | None:
    """This page with the rows after `cursor`; None: there are none. A cursor counts only for the same filter."""
    if cursor is None:
        return None
    request = asked.request
    said = [pair for pair in request.query_params.multi_items() if pair[0] != "cursor"]
    return f"{request.url.path}?{urlencode([*said, ('cursor', cursor)])}"


def first(asked: Asking) -> str | None:
    """This page from its start; None: it is the start."""
    request = asked.request
    if "cursor" not in request.query_params:
        return None
    said = [pair for pair in request.query_params.multi_items() if pair[0] != "cursor"]
    return request.url.path + (f"?{urlencode(said)}" if said else "")
