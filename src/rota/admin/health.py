"""What is usually wrong, looked at: the store, who works, what waits. Each finding with its remedy."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rota._core.lengths import many, span
from rota._core.room import SAMPLED
from rota._core.series import step_for
from rota.admin.clock_changes import clock_findings
from rota.admin.scope import OutOfScope
from rota.admin.tasks import Tasks
from rota.errors import RotaError, StoreError
from rota.stores.contract import Finding, PrivateFinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota._core.room import Room, RoomSample

LONG_WAIT = 3600.0


class Health(Tasks):
    """What `rota doctor` and the page of the system ask."""

    async def room(self) -> Room:
        """What the store is, and what takes room in it."""
        return await self.store.room()

    async def room_series(self, since: float) -> Sequence[RoomSample]:
        """What took room along time. A store that measures nothing answers nothing."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "what takes room in the store")
        return await self.store.room_series(since, max(step_for(since), SAMPLED))

    async def refuses_changes(self) -> str | None:
        """Why the store takes no changes now; None: it takes them."""
        return await self.store.refuses_changes()

    async def examine(self) -> list[Finding]:
        """What is usually wrong with a store and with those who work on it. A store that is away is a finding."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "the health of the store")
        found = await self.examine_store()
        if any(finding.level == "bad" for finding in found):
            return found
        try:
            return found + await self.examine_work()
        except StoreError as error:
            return [*found, _away(error)]

    async def examine_store(self) -> list[Finding]:
        """Whether the store answers, fits this code, and is well."""
        diagnose = getattr(self.store, "diagnose", None)
        try:
            if diagnose is not None:
                return list(await diagnose())
            await self.store.open()
        except RotaError as error:
            return [_away(error)]
        return [Finding("ok", f"connection: the {self.store.name} store answers")]

    async def examine_work(self) -> list[Finding]:
        """Whether somebody works, and on everything that waits."""
        living, stats = await self.living(), await self.stats()
        found = [Finding("ok", f"workers: {many(len(living), 'living session')}")]
        if not living:
            found = [Finding("warn", "workers: none is running", "Start one with `rota worker APP`.")]
        else:
            found += [
                Finding(
                    "warn",
                    f"tasks: {many(jobs, 'pending job')} of {task!r}, which no living worker knows",
                    "Deploy the code that defines it, or "
                    f"`rota jobs cancel --task {shlex.quote(task)} --state pending`.",
                )
                for task, jobs in sorted((await self.unserved()).items())
            ] or [Finding("ok", "tasks: every waiting job has a worker that knows it")]
        found += [
            Finding(
                "warn",
                f"tasks: {row.task!r} is parked; {many(row.crashes, 'job')} killed their process under code version "
                f"{row.code_version}, the last one: {row.what}",
                f"Deploy a repaired version, or `rota tasks release {shlex.quote(row.task)}`.",
            )
            for row in await self.parked_tasks()
        ]
        known = (await self.store.roster()).schedules
        if known:
            found += clock_findings([record.effective for record in known], await self.store.now())
        waited = stats.oldest_wait
        if waited is not None and waited.total_seconds() > LONG_WAIT:
            what = f"queue: the oldest due job has waited {span(waited)}"
            return [*found, Finding("warn", what, "Add workers or slots (--lane).")]
        what = "nothing is due" if waited is None else f"the oldest waits {span(waited)}"
        return [*found, Finding("ok", f"queue: {what}")]


def _away(error: RotaError) -> Finding:
    return PrivateFinding("bad", f"store: {error}", "Start it, or correct the address.")
