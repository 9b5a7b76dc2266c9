"""What a deploy would meet in this store, and making new code known before its workers start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rota._core.actions import Audit
from rota._core.deploy import Finding, Known, Release, compare
from rota.admin.reads import Reads
from rota.errors import SchemaOutdated
from rota.new_ids import new_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rota._core.queue import Queue
    from rota.schedule import Schedule
    from rota.task import Task

SAMPLE = 20
"""So many payloads of each task and payload version are tried."""


class Published(NamedTuple):
    """What was made known."""

    tasks: Sequence[str]
    schedules: Sequence[str]
    code_version: str | None


class Deploys(Reads):
    """Questions before a deploy, and its first step."""

    async def deploy_check(self, release: Release, *, sample: int = SAMPLE) -> list[Finding]:
        """Everything in this store that the deploy of this code would break or change, the worst first."""
        return compare(release, await self._known(sample))

    async def publish(self, release: Release) -> Published:
        """Make the code's tasks and schedules known, without a worker, and tell the audit who did.

        What operators set of a schedule stays.
        """
        specs = [spec._replace(code_version=release.code_version) for spec in release.tasks.values()]
        schedules = list(release.schedules) if release.ticking else []
        before = sorted({spec.code_version or "unknown" for spec in await self.store.tasks()})
        told = Audit(
            self.actor,
            "deploy",
            None,
            before=", ".join(before) or None,
            after=f"{release.code_version or 'unknown'} ({len(specs)} tasks, {len(schedules)} schedules)",
            about=f"deploy:{new_id()}",
        )
        await self.store.publish(specs, told)
        if release.queues:
            await self.store.publish_queues(release.queues)
        if schedules:
            await self.store.publish_schedules(schedules)
        return Published(
            [spec.name for spec in specs], [spec.name for spec in schedules], release.code_version
        )

    async def _known(self, sample: int) -> Known:
        ask = getattr(self.store, "pending_migrations", None)
        pending = [] if ask is None else list(await ask())
        try:
            return Known(
                pending,
                await self.store.tasks(),
                await self.store.waiting(sample=sample),
                (await self.store.roster()).schedules,
            )
        except SchemaOutdated as error:
            return Known(pending, None, None, None, why_not=str(error))


def release_of(
    tasks: Mapping[str, Task[..., Any]],
    schedules: Mapping[str, Schedule],
    *,
    queues: Mapping[str, Queue] | None = None,
    maintenance: Sequence[str] = (),
    ticking: bool = True,
    code_version: str | None = None,
) -> Release:
    """The code of an app as a release."""

    def read(task: str, payload_json: str) -> str | None:
        try:
            tasks[task].arguments(payload_json)
        except Exception as error:  # whatever a user's own types raise, a worker would meet it too
            return str(error) or type(error).__name__
        return None

    return Release(
        {name: task.spec() for name, task in tasks.items()},
        [schedule.spec(maintenance) for schedule in schedules.values()],
        read,
        code_version,
        list((queues or {}).values()),
        ticking,
    )
