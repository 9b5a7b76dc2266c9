"""Lists come in pages: so many rows, and a cursor for the next. A cursor means nothing to anybody else."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Annotated, Generic, TypeVar
from uuid import UUID

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from rota.web.asking import Asked
from rota.web.problems import Problem

T = TypeVar("T")
R = TypeVar("R")

MOST = 200


class Page(BaseModel, Generic[R]):
    """Some rows of a list."""

    items: list[R]
    next: str | None = Field(
        description="The cursor of the next page, also after one that is not full; null: this is the last."
    )


class BadCursor(Problem):
    """A cursor of another list, or made by hand."""

    def __init__(self) -> None:
        super().__init__(
            422, "bad-cursor", "This cursor does not belong to this list and this filter. Begin without one."
        )


class Paging:
    """Which page is asked for. Endpoints ask the store for `fetch` rows, one more than they show."""

    def __init__(
        self,
        asked: Asked,
        limit: Annotated[int, Query(ge=1, le=MOST, description="Rows of a page.")] = 50,
        cursor: Annotated[
            str | None, Query(max_length=2000, description="`next` of the page before, with the same filter.")
        ] = None,
    ) -> None:
        self.limit, self.fetch = limit, limit + 1
        self._stamp = _stamp(asked)
        self.position = None if cursor is None else self._read(cursor)
        """Where this page begins, as `page` was told it; None: at the start."""

    def page(
        self,
        rows: Sequence[T],
        record: Callable[[T], R],
        *,
        position: Callable[[T], object],
        stopped: object = None,
    ) -> Page[R]:
        """The rows that are shown, and the cursor if there are more; `position` says where the next page goes on.

        `stopped` is where it goes on when looking for rows was given up before the page was full.
        """
        shown = rows[: self.limit]
        more = len(rows) > self.limit and bool(shown)
        last = position(shown[-1]) if more else stopped
        return Page(
            items=[record(row) for row in shown],
            next=None if last is None else self._written(str(last)),
        )

    @property
    def before(self) -> UUID | None:
        """The position as the id of the last row of the page before."""
        try:
            return None if self.position is None else UUID(self.position)
        except ValueError:
            raise BadCursor from None

    def _written(self, position: str) -> str:
        return urlsafe_b64encode(json.dumps([self._stamp, position]).encode()).decode().rstrip("=")

    def _read(self, cursor: str) -> str:
        try:
            stamp, position = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
            if stamp == self._stamp and isinstance(position, str):
                return position
        except (ValueError, TypeError, RecursionError):
            pass
        raise BadCursor


def _stamp(asked: Asked) -> str:
    """What a cursor is for: this list, this tenant, this filter. It proves nothing; it only tells mistakes apart."""
    request = asked.request
    said = sorted(pair for pair in request.query_params.multi_items() if pair[0] not in ("cursor", "limit"))
    about = json.dumps([request.url.path, asked.tenant, said])
    return sha256(about.encode()).hexdigest()[:16]


Paged = Annotated[Paging, Depends()]
