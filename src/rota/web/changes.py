"""Whether the store takes changes: a replica does not, until it is promoted, and pages must not offer any there."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from rota.admin import Admin
from rota.errors import RotaError
from rota.web.recently import Recently

if TYPE_CHECKING:
    from rota.app import Rota

LASTS = 3.0
"""Seconds that an answer counts: so long after a failover, buttons come and go."""
PATIENCE = 1.0
"""Seconds that a request waits for an answer; then what was known last counts. What hangs is waited for once."""


class Changes:
    """Asks the store at most every few seconds, for all requests together."""

    def __init__(self, rota: Rota) -> None:
        self._rota, self._recently = rota, Recently()
        self.refusal: str | None = None
        """Why it takes no changes, as it was known last."""

    async def refused(self) -> str | None:
        """Why the store takes no changes; None: it does. A store that is away has not changed its mind."""
        with suppress(RotaError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                self.refusal = await self._recently.get("changes", self._asked, LASTS)
        return self.refusal

    async def _asked(self) -> str | None:
        return await Admin(self._rota.store, actor="api").refuses_changes()
