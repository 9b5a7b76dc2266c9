"""A handler's own transaction with somebody between it and its end: a test kit, or a rehearsal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from rota._core.outcome import Transition
    from rota.stores.contract import Settled
    from rota.stores.transaction_contract import OwnTransaction


class WatchedTransaction:
    """The same to the handler; `end(own, transition)` decides what its completion comes to."""

    def __init__(
        self, own: OwnTransaction, end: Callable[[OwnTransaction, Transition], Awaitable[Settled]]
    ) -> None:
        self._own, self._end = own, end
        self.undo, self.cut = own.undo, own.cut

    def __enter__(self) -> Any:
        return self._own.__enter__()

    def __exit__(self, *how: object) -> bool | None:
        return self._own.__exit__(*cast("Any", how))

    async def __aenter__(self) -> Any:
        return await self._own.__aenter__()

    async def __aexit__(self, *how: object) -> bool | None:
        return await self._own.__aexit__(*cast("Any", how))

    async def complete(self, transition: Transition) -> Settled:
        return await self._end(self._own, transition)
