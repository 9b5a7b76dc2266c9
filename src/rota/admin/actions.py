"""What people do to one job: read it, decide in `_core`, write behind the fence with the audit row."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from rota._core.actions import GRACE, Audit, CancelRequest, Change, Refusal, Removal, Verb, act
from rota._core.job import Job, State
from rota._core.retry import Retry
from rota.admin.reads import Reads
from rota.errors import JobChanged, MoveRefused
from rota.stores.contract import Answer

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

TRIES = 3
LOOK_AGAIN = 0.2

ASKED = "cancelling"
DELETED = "deleted"


class Done(NamedTuple):
    """An action that was taken."""

    job: Job
    """The job as it was when the action was decided."""
    verb: Verb
    before: str
    after: str
    """Its state now; `cancelling` when its worker was asked to stop it, `deleted` when it is gone."""

    @property
    def asked(self) -> bool:
        """Whether a worker has yet to confirm it."""
        return self.after == ASKED


class Actions(Reads):
    """The verbs. Each takes an expected `version`, or decides anew when somebody else was faster."""

    async def retry(self, job_id: UUID, *, reason: str | None = None, version: int | None = None) -> Done:
        """Run a dead or cancelled job again from its first attempt, or a waiting one at once."""
        return await self._take(Verb.RETRY, job_id, reason=reason, version=version)

    async def hold(self, job_id: UUID, *, reason: str | None = None, version: int | None = None) -> Done:
        """Set a pending job aside until it is released."""
        return await self._take(Verb.HOLD, job_id, reason=reason, version=version)

    async def release(self, job_id: UUID, *, reason: str | None = None, version: int | None = None) -> Done:
        """Put a held job back on the list."""
        return await self._take(Verb.RELEASE, job_id, reason=reason, version=version)

    async def kill(self, job_id: UUID, *, reason: str | None = None, version: int | None = None) -> Done:
        """Move an unfinished job to the dead at once; a worker that runs it is fenced off."""
        return await self._take(Verb.KILL, job_id, reason=reason, version=version)

    async def delete(self, job_id: UUID, *, reason: str | None = None, version: int | None = None) -> Done:
        """Remove a job that is not running, with its history. The audit row stays."""
        return await self._take(Verb.DELETE, job_id, reason=reason, version=version)

    async def fail(
        self, job_id: UUID, *, reason: str | None = None, will_retry: bool = True, version: int | None = None
    ) -> Done:
        """Fail the running attempt; its retry policy says what follows. Without `will_retry` it is dead."""
        return await self._take(Verb.FAIL, job_id, reason=reason, version=version, final=not will_retry)

    async def cancel(
        self,
        job_id: UUID,
        *,
        reason: str | None = None,
        force: bool = False,
        grace: float = GRACE,
        version: int | None = None,
    ) -> Done:
        """Take a waiting job off the list, or ask the worker of a running one to stop it.

        With `force`, a worker that has not confirmed within `grace` seconds of
        being asked is fenced off and the job is cancelled without it.
        """
        done = await self._take(Verb.CANCEL, job_id, reason=reason, version=version)
        if not (force and done.asked):
            return done
        ended = await self._confirmed(job_id, grace)
        if ended is not None:
            return done._replace(after=ended.state.value)
        try:
            return await self._take(Verb.CANCEL, job_id, reason=reason, force=True)
        except MoveRefused:  # it ended between our last look and the write
            return done._replace(after=(await self.job(job_id)).state.value)

    async def plan(self, verb: Verb, job_id: UUID, *, force: bool = False, will_retry: bool = True) -> Done:
        """What `verb` would do to the job now; nothing is written."""
        job = await self.job(job_id)
        retry = await self._retry_of(job)
        now = await self.store.now()
        change = decided(
            job, verb, retry=retry, now=now, force=force, final=verb is Verb.FAIL and not will_retry
        )
        return Done(job, verb, job.state.value, _after(change))

    async def _confirmed(self, job_id: UUID, grace: float) -> Job | None:
        """Wait until the job has left its worker, at most `grace` seconds since the worker was asked."""
        while True:
            job = await self.job(job_id)
            if job.state is not State.RUNNING:
                return job
            asked_at = job.cancel_requested_at or job.updated_at
            left = asked_at + timedelta(seconds=grace) - await self.store.now()
            if left <= timedelta(0):
                return None
            await asyncio.sleep(min(LOOK_AGAIN, left.total_seconds()))

    async def _take(
        self,
        verb: Verb,
        job_id: UUID,
        *,
        reason: str | None = None,
        version: int | None = None,
        force: bool = False,
        final: bool = False,
    ) -> Done:
        state: State | None = None
        for _ in range(TRIES):
            job = await self.job(job_id)
            if version is not None and job.version != version:
                raise JobChanged(job.id, job.state)
            retry = await self._retry_of(job) if verb is Verb.FAIL else Retry()
            change = decided(
                job, verb, retry=retry, now=await self.store.now(), reason=reason, force=force, final=final
            )
            done, state = await self._write(job, verb, change, reason)
            if done is not None:
                return done
            if version is not None:
                break
        raise JobChanged(job_id, state or "gone")

    async def _write(
        self, job: Job, verb: Verb, change: Change, reason: str | None, *, about: str | None = None
    ) -> tuple[Done | None, State | None]:
        """Apply a decided change: what was done, or None and the state that fenced it."""
        done = Done(job, verb, job.state.value, _after(change))
        audit = Audit(
            self.actor,
            verb.value,
            job.id,
            reason,
            done.before,
            done.after,
            about=about,
            correlation_id=job.correlation,
        )
        settled = await self.store.change(change, audit)
        return (None if settled.answer is Answer.FENCED else done), settled.state

    async def _retry_of(self, job: Job) -> Retry:
        """The task's stored policy, so that no user code is needed; the defaults where none is known."""
        return next((task.retry for task in await self.store.tasks() if task.name == job.task), Retry())


def decided(
    job: Job,
    verb: Verb,
    *,
    retry: Retry,
    now: datetime,
    reason: str | None = None,
    force: bool = False,
    final: bool = False,
) -> Change:
    """The change that `verb` makes to this job, or `MoveRefused` with what to do instead."""
    # A final failure is a running job moved to the dead: the same move that kill makes.
    means = Verb.KILL if final and job.state is State.RUNNING else verb
    change = act(job, means, retry=retry, now=now, reason=reason, force=force)
    if isinstance(change, Refusal):
        raise MoveRefused(job.id, change.state.value, change.verb.value, change.hint)
    return change


def _after(change: Change) -> str:
    if isinstance(change, CancelRequest):
        return ASKED
    if isinstance(change, Removal):
        return DELETED
    return change.to.value
