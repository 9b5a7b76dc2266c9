"""Submitting a job from outside: by its task's name, checked by the task's code or by what workers published of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rota._core.job import NewJob
from rota._core.payload import problem
from rota._core.rules import KeyRule
from rota._core.schema import check
from rota.admin.reads import Reads
from rota.errors import JobNotFound, KeyConflict, NotUnique, PayloadInvalid, PayloadTooLarge, UnknownTask
from rota.options import terms
from rota.stores.contract import Enqueued, Stored

if TYPE_CHECKING:
    from rota._core.task_spec import TaskSpec
    from rota.pressure import Pressure
    from rota.task import Task


class Submitted(NamedTuple):
    """A job that was handed in, and which job stands for it now."""

    job: NewJob
    answer: Enqueued


class Submissions(Reads):
    """Work handed in by programs that do not hold the app."""

    async def submit(
        self,
        task: str,
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
        *,
        tasks: Mapping[str, Task[..., Any]],
        pressure: Pressure | None = None,
    ) -> Submitted:
        """Store one job of the named task; `options` are those of `using()`, `tasks` those whose code is here.

        One tenant's admin makes jobs of that tenant, whatever is said. A key
        of a job with other arguments is a `KeyConflict`.
        """
        said = await self._submission_terms(options)
        if task in tasks:
            job = tasks[task].prepare((), arguments, said)
        else:
            published = {spec.name: spec for spec in await self.store.tasks()}
            if task not in published:
                raise UnknownTask(task, {*published, *tasks}, published=True)
            job = from_registry(published[task], arguments, said)
        if pressure is not None:
            await pressure.admit([job])
        [answer] = await self.store.enqueue([job])
        if answer.stored is Stored.CONFLICT:
            raise KeyConflict(job.key or "", answer.id)
        if answer.stored is Stored.REJECTED:
            raise NotUnique(job.unique_key or "", answer.id)
        return Submitted(job, answer)

    async def _submission_terms(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options in the words of a new job. Whose job it is, and who made it, is not for them to say."""
        asked = options.get("tenant")
        if self.tenant is not None and asked not in (None, self.tenant):
            raise PayloadInvalid(
                f"tenant {asked!r} is not yours. Leave it out: the job gets the tenant of whoever hands it in."
            )
        whose = {"tenant": self.tenant or asked or "", "created_by": self.actor}
        try:
            said = terms({**options, **whose})
        except (ValueError, TypeError) as error:
            raise PayloadInvalid(str(error)) from error
        if said.get("parent_id") is not None:
            try:
                await self.job(said["parent_id"])
            except JobNotFound as error:
                raise PayloadInvalid(f"parent {said['parent_id']} is no job that is known here.") from error
        return said


def from_registry(
    spec: TaskSpec, arguments: Mapping[str, Any], said: Mapping[str, Any], *, by_schedule: bool = False
) -> NewJob:
    """A job made without the user's code: what workers published says what fits, and how it runs."""
    from rota.new_ids import new_id

    check(spec.name, arguments, json.loads(spec.schema_json))
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    trouble = problem(text)
    if trouble is not None:
        kind = PayloadTooLarge if "bytes of JSON" in trouble else PayloadInvalid
        raise kind(f"{spec.name} cannot be enqueued: {trouble}.")
    job = NewJob(
        new_id(),
        spec.name,
        text,
        queue=spec.queue,
        priority=spec.priority,
        max_attempts=spec.retry.attempts,
        timeout=spec.timeout,
        category=spec.category,
        payload_version=spec.payload_version,
    )
    ruled = spec.rules.terms(spec.name, arguments, said)
    laid = {**ruled, **said}
    serial = laid.pop("serial", None) or (KeyRule(spec.gate_path).of(arguments) if spec.gate_path else None)
    job = job._replace(**laid)
    if serial is not None:  # as a task with `serial=` makes it, from the argument's text
        job = job._replace(gate=f"serial:{job.tenant or ''}:{serial}")
    policy = spec.rules.policy
    return job if policy is None else policy.applied(job, by_schedule=by_schedule)
