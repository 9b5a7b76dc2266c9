"""observed(store): one place that times every call of any store. Stores themselves never log or count."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias, cast

from rota.stores.contract import Store

log = logging.getLogger("rota.store")

SLOW = 1.0
UNTIMED = frozenset({"listen", "migrate", "open", "close", "tidy", "foresee", "prune"})
"""Verbs that may take long, or never return, while all is well."""


class Call(NamedTuple):
    """One finished call of a store."""

    store: str
    verb: str
    seconds: float
    error: BaseException | None
    items: int | None
    """How many jobs the first argument held, where it is a list."""


Report: TypeAlias = Callable[[Call], None]


def observed(store: Store, report: Report | None = None, *, slow: float = SLOW) -> Store:
    """The same store, which warns of calls slower than `slow` seconds and tells `report` of every call."""
    return cast("Store", _Observed(store, report, slow))


class _Observed:
    def __init__(self, store: Store, report: Report | None, slow: float) -> None:
        self.name = store.name
        self._store, self._report, self._slow = store, report, slow

    def __getattr__(self, verb: str) -> Any:
        """Wrap a verb at its first use; from then on it is a plain attribute."""
        found = getattr(self._store, verb)
        if not verb.startswith("_") and verb not in UNTIMED and inspect.iscoroutinefunction(found):
            found = self._timed(verb, found)
        setattr(self, verb, found)
        return found

    def _timed(self, verb: str, call: Callable[..., Any]) -> Callable[..., Any]:
        name, report, slow, store = self.name, self._report, self._slow, self._store

        async def quick(*args: Any, **kwargs: Any) -> Any:
            began = perf_counter()
            answer = await call(*args, **kwargs)
            if perf_counter() - began > slow:
                _warn(name, verb, perf_counter() - began)
            return answer

        async def reported(*args: Any, **kwargs: Any) -> Any:
            began = perf_counter()
            error: BaseException | None = None
            try:
                return await call(*args, **kwargs)
            except BaseException as raised:
                error = raised
                raise
            finally:
                took = perf_counter() - began
                if took > slow:
                    _warn(name, verb, took)
                assert report is not None
                report(
                    Call(
                        name, verb, took, error, len(args[0]) if args and isinstance(args[0], list) else None
                    )
                )

        timed = quick if report is None else reported
        if not hasattr(store, "starting"):
            return timed

        async def once_started(*args: Any, **kwargs: Any) -> Any:
            # While an embedded server is being made, the time is its start's: no sign of a slow database.
            return await (call if store.starting else timed)(*args, **kwargs)

        return once_started


def _warn(store: str, verb: str, took: float) -> None:
    log.warning(
        "the %s store took %.1f s for %s; is the database slow, locked or far away?", store, took, verb
    )
