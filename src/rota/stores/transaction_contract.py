"""What a store promises of the transaction in which a handler works and its job ends."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rota._core.outcome import Transition
    from rota.stores.contract import Settled


class OwnTransaction(Protocol):
    """One transaction of one attempt, in the database of the jobs. `with` and `async with` are the handler's part.

    Every block is undone by itself when it raises. What the other blocks wrote
    is committed with the job's end, or never.
    """

    def __enter__(self) -> Any:
        """A connection to work on, for a handler in a thread."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...

    async def __aenter__(self) -> Any:
        """A connection to work on, for a coroutine."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...

    async def complete(self, transition: Transition) -> Settled:
        """Complete the job and commit, both or neither.

        `fenced` when the job has moved on: then everything is undone. Raises
        when the commit did not happen, or when nobody can tell; a settle of the
        same claim is fenced then if it did.
        """
        ...

    async def undo(self) -> None:
        """Undo everything; harmless where nothing is open. Never raises."""
        ...

    def cut(self) -> None:
        """Hang up on a handler that does not stop: the database undoes its part and frees its locks."""
        ...
