"""What people do with dead letters: look at them and at groups of like ones, acknowledge, discard, reprocess."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from rota._core.actions import Audit
from rota._core.dead_letter import DeadFilter, DeadLetter, FailureGroup, follower, review_audit
from rota._core.job import Job, NewJob
from rota._core.payload import problem
from rota._core.review import (
    REQUESTED,
    SUCCESS,
    Landed,
    Review,
    ReviewChange,
    Reviewed,
    ReviewRefusal,
    ReviewVerb,
    review,
)
from rota._core.schema import check
from rota.admin.reads import Reads
from rota.errors import GroupNotFound, JobChanged, MoveRefused, PayloadInvalid, UnknownTask

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.task_spec import TaskSpec
    from rota.stores.contract import Attempt

TRIES = 3
SHOWN = 20


class LetterView(NamedTuple):
    """One dead letter and all that is known of it."""

    letter: DeadLetter
    now: datetime
    attempts: Sequence[Attempt]
    """Those that failed, oldest first."""
    audit: Sequence[Audit]
    """What was done to it, newest first."""
    new_job: Job | None
    """The newest job that did, or does, its work again."""


class GroupView(NamedTuple):
    """One group of like failures, with its newest members."""

    group: FailureGroup
    now: datetime
    letters: Sequence[DeadLetter]
    stack: str | None
    """Of the newest one."""


class ReviewDone(NamedTuple):
    """A review that was taken a step further."""

    letter: DeadLetter
    """As it was when this was decided."""
    verb: ReviewVerb
    before: str
    after: str
    new_job: UUID | None = None
    already: bool = False
    """True: somebody did the same a moment before; nothing was done twice."""


class DeadLetters(Reads):
    """Dead letters, one at a time. Each verb takes an expected `version`, or decides anew when somebody was faster."""

    async def dead_letters(self, wanted: DeadFilter) -> Sequence[DeadLetter]:
        """The dead letters that match, newest first, at most `wanted.limit`."""
        return await self.store.dead_letters(wanted)

    async def dead_letter(self, job_id: UUID) -> DeadLetter:
        """One of them; `JobNotFound`, or `MoveRefused` when the job is not dead."""
        found = await self.store.dead_letter(job_id)
        if found is None:
            job = await self.job(job_id)
            raise MoveRefused(
                job_id,
                job.state.value,
                "review",
                "Only a dead job is a dead letter; `rota jobs show` has it.",
            )
        return found

    async def show_dead_letter(self, job_id: UUID) -> LetterView:
        """A dead letter with its attempts, what was done to it, and the job that does its work again."""
        letter = await self.dead_letter(job_id)
        new = [] if letter.reprocessed_as is None else await self.store.get([letter.reprocessed_as])
        return LetterView(
            letter,
            await self.store.now(),
            await self.store.attempts(job_id),
            await self.store.audit(job_id),
            new[0] if new else None,
        )

    async def failures(self, wanted: DeadFilter) -> Sequence[FailureGroup]:
        """Like failures together, the group that was seen last first; those that wait for review unless told."""
        return await self.store.failure_groups(wanted)

    async def failure_hours(self, fingerprints: Sequence[str], *, hours: int = 24) -> dict[str, list[int]]:
        """How many of each of these groups died in each of the last hours, oldest first, whatever their reviews."""
        return await self.store.failure_hours(fingerprints, hours=hours)

    async def failure(self, fingerprint: str) -> GroupView:
        """One group, whatever the reviews of its members, or `GroupNotFound`.

        The beginning of a fingerprint is enough where only one group begins so.
        """
        every = DeadFilter(reviews=tuple(Review), limit=SHOWN)
        groups = await self.store.failure_groups(every._replace(group=fingerprint))
        if not groups:
            known = await self.store.failure_groups(every._replace(limit=1000))
            groups = [group for group in known if fingerprint and group.fingerprint.startswith(fingerprint)]
            if len(groups) != 1:
                raise GroupNotFound(fingerprint, [group.fingerprint for group in known])
        attempts = await self.store.attempts(groups[0].example, limit=1)
        letters = await self.store.dead_letters(DeadFilter(group=groups[0].fingerprint, limit=SHOWN))
        stack = attempts[-1].stack if attempts else None
        return GroupView(groups[0], await self.store.now(), letters, stack)

    async def acknowledge(
        self, job_id: UUID, *, reason: str | None = None, version: int | None = None
    ) -> ReviewDone:
        """Note that somebody knows of it; nothing more is done."""
        return await self._review(ReviewVerb.ACKNOWLEDGE, job_id, reason, version=version)

    async def discard(
        self, job_id: UUID, *, reason: str | None = None, version: int | None = None
    ) -> ReviewDone:
        """Give its work up."""
        return await self._review(ReviewVerb.DISCARD, job_id, reason, version=version)

    async def reprocess(
        self,
        job_id: UUID,
        *,
        reason: str | None = None,
        edits: Mapping[str, Any] | None = None,
        version: int | None = None,
        key: str | None = None,
    ) -> ReviewDone:
        """Do its work again in a new job, with its payload; `edits` replace arguments by name.

        `key` is an idempotency key of the new job's own. The dead letter keeps
        everything. It is resolved when the new job completes, and back in
        review when that dies too.
        """
        return await self._review(ReviewVerb.REPROCESS, job_id, reason, edits=edits, version=version, key=key)

    async def plan_review(
        self, verb: ReviewVerb, job_id: UUID, *, edits: Mapping[str, Any] | None = None
    ) -> ReviewDone:
        """What `verb` would do to the dead letter now; nothing is written."""
        letter = await self.dead_letter(job_id)
        change = decided(letter.job, verb, by=self.actor, notes=None)
        if verb is ReviewVerb.REPROCESS:
            self._follower(letter.job, await self._specs(), edits)
        return ReviewDone(letter, verb, change.origin.value, change.target.value)

    async def _review(
        self,
        verb: ReviewVerb,
        job_id: UUID,
        reason: str | None,
        *,
        edits: Mapping[str, Any] | None = None,
        version: int | None = None,
        key: str | None = None,
    ) -> ReviewDone:
        specs = await self._specs() if verb is ReviewVerb.REPROCESS else {}
        review_now: Review | None = None
        for _ in range(TRIES):
            letter = await self.dead_letter(job_id)
            if version is not None and letter.job.version != version:
                raise JobChanged(job_id, letter.review.value)
            done, review_now = await self._once(verb, letter, reason, specs, edits=edits, key=key)
            if done is not None:
                return done
        raise JobChanged(job_id, review_now or "not dead any more")

    async def _once(
        self,
        verb: ReviewVerb,
        letter: DeadLetter,
        reason: str | None,
        specs: Mapping[str, TaskSpec],
        *,
        edits: Mapping[str, Any] | None = None,
        about: str | None = None,
        key: str | None = None,
    ) -> tuple[ReviewDone | None, Review | None]:
        """Decide and write once: what was done, or None and where the review stands instead."""
        job = letter.job
        if verb is ReviewVerb.REPROCESS and letter.review is Review.REPROCESSING:
            # The second click: the job that the first one made is the answer to both.
            stands = Review.REPROCESSING.value
            return ReviewDone(
                letter, verb, stands, stands, letter.reprocessed_as, already=True
            ), letter.review
        change = decided(job, verb, by=self.actor, notes=reason)
        if verb is ReviewVerb.REPROCESS:
            new = self._follower(job, specs, edits, key)
            written = await self._follow(job, change, new, edits, about)
        else:
            audit = review_audit(self.actor, job, change, verb, about=about)
            written = await self.store.change_review(change, audit)
        if written.landed is Landed.FENCED:
            return None, written.review
        already = written.landed is Landed.ALREADY
        done = ReviewDone(
            letter, verb, change.origin.value, change.target.value, written.new_job, already=already
        )
        return done, written.review

    def _follower(
        self,
        job: Job,
        specs: Mapping[str, TaskSpec],
        edits: Mapping[str, Any] | None,
        key: str | None = None,
    ) -> NewJob:
        """The job that is to do the dead one's work again; what was edited keeps the rules of its task."""
        from rota.new_ids import new_id

        new = follower(job, new_id(), by=self.actor, payload_json=edited(job, specs, edits), key=key)
        policy = specs[job.task].rules.policy
        if edits and policy is not None:
            policy.applied(new)
        return new

    async def _follow(
        self,
        job: Job,
        change: ReviewChange,
        new: NewJob,
        edits: Mapping[str, Any] | None,
        about: str | None,
    ) -> Reviewed:
        # The values are not told: the dead letter has the old ones, the new job the new.
        named = f" with {', '.join(sorted(edits))} edited" if edits else ""
        requested = Audit(
            self.actor,
            REQUESTED,
            job.id,
            change.notes,
            change.origin.value,
            change.target.value + named,
            about=about,
            correlation_id=job.correlation,
        )
        success = requested._replace(action=SUCCESS, after=f"job {new.id}")
        return await self.store.reprocess(change, new, [requested, success])

    async def _specs(self) -> dict[str, TaskSpec]:
        return {spec.name: spec for spec in await self.store.tasks()}


def decided(job: Job, verb: ReviewVerb, *, by: str, notes: str | None) -> ReviewChange:
    """The change that `verb` makes to the review of this job, or `MoveRefused` with what to do instead."""
    change = review(job, verb, by=by, notes=notes)
    if isinstance(change, ReviewRefusal):
        raise MoveRefused(job.id, change.stands, change.verb.value, change.hint)
    return change


def edited(job: Job, specs: Mapping[str, TaskSpec], edits: Mapping[str, Any] | None) -> str | None:
    """The payload for the new job, checked by what its task has published; None: the dead job's own."""
    if job.task not in specs:
        raise UnknownTask(job.task, specs, published=True)
    if not edits:
        return None
    payload = {**job.payload, **edits}
    check(job.task, payload, json.loads(specs[job.task].schema_json))
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    trouble = problem(text)
    if trouble is not None:
        raise PayloadInvalid(f"{job.task} cannot be reprocessed so: {trouble}.")
    return text
