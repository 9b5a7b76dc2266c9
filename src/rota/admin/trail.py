"""The audit: who did what to which job, and why."""

from __future__ import annotations

from collections.abc import Sequence

from rota._core.actions import Audit, AuditFilter
from rota.admin.reads import Reads
from rota.admin.scope import Walked, walked


class AuditTrail(Reads):
    """The audit, read. Nothing here or elsewhere changes it."""

    async def trail(self, wanted: AuditFilter) -> Sequence[Audit]:
        """The audit rows that match, newest first, at most `wanted.limit`."""
        return await self.store.audit_trail(wanted)

    async def trail_page(self, wanted: AuditFilter) -> Walked:
        """The same, and where to go on when rows of others were in the way of a full page."""
        return await walked(self.store, wanted)
