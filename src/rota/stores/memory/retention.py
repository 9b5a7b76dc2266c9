"""Retention policies, and the archive: what is left of jobs whose time is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from rota._core.actions import Audit
from rota._core.failure import storable
from rota._core.job import TERMINAL, Job, State
from rota._core.retention import (
    ArchivedJob,
    Foreseen,
    Policy,
    Pruned,
    Pruning,
    archive_keep,
    chosen,
    keep_of,
    let_go_at,
    summary,
)
from rota._core.review import Review
from rota.stores.memory.book import Book
from rota.stores.memory.settling import REVIEW_CLOSED
from rota.stores.retention_contract import Retention


class Due(NamedTuple):
    """A job that is past its time."""

    job: Job
    ended: datetime
    policy: Policy | None
    bound: bool
    """Unfinished work refers to it, so it stays."""


class Retained:
    """A part of the memory store: `stores/retention_contract.py` has the promises."""

    _book: Book

    def _step(self) -> AbstractContextManager[datetime]:
        raise NotImplementedError

    async def policies(self) -> list[Policy]:
        with self._step():
            return listed(self._book)

    async def set_policy(self, policy: Policy, audit: Audit) -> None:
        with self._step() as now:
            reason = None if policy.reason is None else storable(policy.reason)
            told = policy._replace(set_by=storable(policy.set_by), set_at=now, reason=reason)
            known = self._book.policies.get(policy.scope)
            if known is None or known._replace(set_at=now) != told:
                self._book.policies[policy.scope] = told
                self._book.tell(audit, now)

    async def remove_policy(self, policy: Policy, audit: Audit) -> bool:
        with self._step() as now:
            if self._book.policies.pop(policy.scope, None) is None:
                return False
            self._book.tell(audit, now)
            return True

    async def archived(self, job_ids: Sequence[UUID]) -> list[ArchivedJob]:
        with self._step():
            kept = self._book.archive
            return [kept[job_id] for job_id in dict.fromkeys(job_ids) if job_id in kept]

    async def foresee(self, wanted: Pruning, retention: Retention) -> list[Foreseen]:
        with self._step() as now:
            return foreseen(self._book, wanted, retention, now)

    async def prune(
        self, wanted: Pruning, retention: Retention, *, progress: Callable[[int], None] | None = None
    ) -> Pruned:
        with self._step() as now:
            pruned = prune(self._book, wanted, retention, now)
        if progress is not None and pruned.jobs:
            progress(pruned.jobs)
        return pruned

    async def note(self, audit: Audit) -> None:
        with self._step() as now:
            if not any((row.about, row.action) == (audit.about, audit.action) for row in self._book.audit):
                self._book.tell(audit, now)


def listed(book: Book) -> list[Policy]:
    """The policies, the most specific first."""
    return sorted(book.policies.values(), key=lambda policy: (-policy.weight, policy.words))


def prune(book: Book, wanted: Pruning, retention: Retention, now: datetime) -> Pruned:
    """Move what is past its time to the archive."""
    dead = finished = 0
    for job, _, _, bound in list(_due(book, wanted, retention, now)):
        if bound:
            continue
        letter = book.letters.get(job.id)
        by = letter.reviewed_by if letter is not None and job.state is State.DEAD else None
        book.archive[job.id] = summary(job, now, by)
        book.remove(job.id)
        if job.state is State.DEAD:
            dead += 1
        else:
            finished += 1
    return Pruned(finished, dead)


def foreseen(book: Book, wanted: Pruning, retention: Retention, now: datetime) -> list[Foreseen]:
    """The same, counted."""
    groups: dict[tuple[Policy | None, str], list[Due]] = defaultdict(list)
    for due in _due(book, wanted, retention, now):
        groups[due.policy, due.job.state.value].append(due)
    found = [
        Foreseen(
            policy,
            state,
            sum(not due.bound for due in dues),
            sum(due.bound for due in dues),
            min(due.ended for due in dues),
            max(due.ended for due in dues),
        )
        for (policy, state), dues in groups.items()
    ]
    return sorted(found, key=lambda one: (one.state, one.policy is None, one.policy and one.policy.words))


def forget(book: Book, default: float, now: datetime) -> int:
    """Let go of summaries whose time is over; how many."""
    keep = archive_keep(listed(book), default)
    if keep is None:
        return 0
    gone = [
        row.id
        for row in book.archive.values()
        if _month_end(row.archived_at) + timedelta(seconds=keep) <= now
    ]
    for job_id in gone:
        del book.archive[job_id]
    return len(gone)


def _month_end(moment: datetime) -> datetime:
    """Summaries of a month go together."""
    first = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)


def _due(book: Book, wanted: Pruning, retention: Retention, now: datetime) -> Iterator[Due]:
    policies = listed(book)
    bound = {job.parent_id for job in book.jobs.values() if job.state not in TERMINAL}
    bound |= {
        book.letters[job.id].reprocessed_as
        for job in book.in_state(State.DEAD)
        if job.review == Review.REPROCESSING and job.id in book.letters
    }
    for job in book.in_state(*TERMINAL):
        ended = job.finished_at
        if job.state is State.DEAD:
            ended = book.reviewed_at.get(job.id, ended) if job.review in REVIEW_CLOSED else None
        if ended is None or not wanted.fits(job.state.value, job.task, job.tenant):
            continue
        policy = chosen(policies, job.state.value, job.task, job.tenant)
        keep = keep_of(policy, retention.of(job.state.value), wanted)
        exact = job.state is State.DEAD or wanted.older_than is not None
        goes = let_go_at(ended, keep, exact=exact)
        if goes is not None and goes <= now:
            yield Due(job, ended, policy, job.id in bound)
