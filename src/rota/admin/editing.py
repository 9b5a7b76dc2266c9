"""Editing a job that has not started: other arguments, priority, queue or time, behind the fence and with its audit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from rota import options
from rota._core.actions import Audit
from rota._core.job import Job, NewJob, State
from rota._core.outcome import Transition
from rota._core.priority import checked
from rota.admin.actions import TRIES
from rota.admin.dead_letters import edited
from rota.admin.reads import Reads
from rota.errors import JobChanged, MoveRefused, PayloadInvalid
from rota.stores.contract import Answer

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.task_spec import TaskSpec

EDITABLE = (State.PENDING, State.HELD)


class Edit(NamedTuple):
    """What is to be different; None: as it is."""

    args: Mapping[str, Any] | None = None
    """Arguments by name; the others stay."""
    priority: int | None = None
    queue: str | None = None
    run_at: datetime | None = None

    @property
    def empty(self) -> bool:
        return not self.args and self.priority is None and self.queue is None and self.run_at is None


class Edits(Reads):
    """The one verb that changes what a job is."""

    async def edit(
        self, job_id: UUID, edit: Edit, *, reason: str | None = None, version: int | None = None
    ) -> Job:
        """Change a pending or held job; answers it as it is then. Its keys stay, so what they come from must too."""
        wanted = _checked(edit)
        specs = {spec.name: spec for spec in await self.store.tasks()} if wanted.args else {}
        state: State | None = None
        for _ in range(TRIES):
            job = await self.job(job_id)
            if version is not None and job.version != version:
                raise JobChanged(job.id, job.state)
            settled = await self.store.change(
                _change(job, wanted, specs), self._edit_told(job, wanted, reason)
            )
            if settled.answer is not Answer.FENCED:
                return await self.job(job_id)
            state = settled.state
            if version is not None:
                break
        raise JobChanged(job_id, state or "gone")

    def _edit_told(self, job: Job, edit: Edit, reason: str | None) -> Audit:
        """Who changed what. Of arguments only the names are told."""
        before, after = [], []
        for name in ("priority", "queue", "run_at"):
            value = getattr(edit, name)
            if value is not None:
                before.append(f"{name}={getattr(job, name)}")
                after.append(f"{name}={value}")
        if edit.args:
            after.append(f"{', '.join(sorted(edit.args))} edited")
        words = " ".join(before) or job.state.value, " ".join(after)
        return Audit(self.actor, "edit", job.id, reason, *words, correlation_id=job.correlation)


def _checked(edit: Edit) -> Edit:
    """The edit, if it can be meant."""
    if edit.empty:
        raise PayloadInvalid("nothing is to be edited; give args, priority, queue or run_at.")
    try:
        if edit.priority is not None:
            checked(edit.priority)
        if edit.queue is not None:
            options.name("queue", edit.queue)
        if edit.run_at is not None:
            options.moment("run_at", edit.run_at)
    except (ValueError, TypeError) as error:
        raise PayloadInvalid(str(error)) from error
    return edit if edit.run_at is None else edit._replace(run_at=edit.run_at.astimezone(UTC))


def _change(job: Job, edit: Edit, specs: Mapping[str, TaskSpec]) -> Transition:
    if job.state not in EDITABLE:
        hint = "Only a job that waits or is held can be edited; a dead one is reprocessed with edits."
        raise MoveRefused(job.id, job.state.value, "edit", hint)
    changes: dict[str, object] = {}
    if edit.priority is not None:
        changes["priority"] = edit.priority
    if edit.queue is not None:
        changes["queue"] = edit.queue
    if edit.args:
        changes["payload_json"] = _payload(job, edit.args, specs)
    # Why it was held is still why it is held; why it was edited is in the audit.
    return Transition(job, job.state, "edit", run_at=edit.run_at, reason=job.reason, changes=changes)


def _payload(job: Job, args: Mapping[str, Any], specs: Mapping[str, TaskSpec]) -> str:
    """The new payload, checked by what the job's task has published."""
    text = edited(job, specs, args)
    assert text is not None
    rules = specs[job.task].rules
    for option, rule in (("key", rules.key), ("unique key", rules.unique), ("serial key", rules.serial)):
        if rule is not None and (rule.path is None or rule.path in args):
            named = "one of its arguments" if rule.path is None else f"its argument {rule.path!r}"
            raise PayloadInvalid(
                f"the {option} of {job.task} comes from {named}, which would change under its key. "
                "Cancel the job and enqueue another."
            )
    if rules.policy is not None:
        fields = {name: getattr(job, name) for name in ("tenant", "correlation_id", "key", "category")}
        rules.policy.applied(NewJob(job.id, job.task, text, **fields))
    return text
