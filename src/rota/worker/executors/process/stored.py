"""OutOfReach: what a child has in place of a store that lives in its worker's memory."""

from __future__ import annotations

from typing import Any

from rota.errors import NotSupported


class OutOfReach:
    """Refuses every verb: what a child stored in a memory of its own would be lost without a word."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def close(self) -> None:
        """Nothing is open."""

    def __getattr__(self, verb: str) -> Any:
        if verb.startswith("_"):
            raise AttributeError(verb)
        raise NotSupported(
            self.name,
            f"be reached from a child process ({verb})",
            "Use PostgreSQL (also embedded:), or run this task without executor='process'.",
        )
