"""The audit: who did what to which job, and why."""

from __future__ import annotations

from collections.abc import Sequence

from rota._core.actions import Audit, AuditFilter
from rota._core.seal import Examination, Verdict
from rota.admin.reads import Reads
from rota.admin.scope import Walked, walked

PART = 1_000
"""So many rows of the audit are looked at in one go."""


class AuditTrail(Reads):
    """The audit, read. Nothing here or elsewhere changes it."""

    async def trail(self, wanted: AuditFilter) -> Sequence[Audit]:
        """The audit rows that match, newest first, at most `wanted.limit`."""
        return await self.store.audit_trail(wanted)

    async def trail_page(self, wanted: AuditFilter) -> Walked:
        """The same, and where to go on when rows of others were in the way of a full page."""
        return await walked(self.store, wanted)

    async def verify_audit(self, expected: str | None = None) -> Verdict:
        """Look at every row of the audit and its seal; `expected`: a hash that was the chain's last one day."""
        examination = Examination(expected)
        while part := await self.store.seals(examination.place, limit=PART):
            if not examination.look(part):
                return examination.verdict()
        return examination.verdict(await self.store.unsealed())
