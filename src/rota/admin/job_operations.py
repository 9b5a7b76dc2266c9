"""One verb on all jobs that match, as a tracked operation: counted first, paced, stopped and resumed like others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota._core.actions import Verb
from rota._core.operation import JobsWanted, Operation, grown
from rota.admin.bulk import COUNT_CAP, Bulk, Matched, swept
from rota.admin.operations import PAGE, Operations, Work
from rota.admin.reads import HiddenArgument
from rota.errors import RotaError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from rota._core.job import Job
    from rota._core.job_filter import ArgumentIs


class GrownMeanwhile(RotaError):
    """Many more jobs match than whoever wants it was shown. Nothing was begun."""

    def __init__(self, expected: int, matched: Matched) -> None:
        self.expected, self.matched = expected, matched
        super().__init__(
            f"{matched} jobs match now, and you were shown {expected:,}. Nothing was begun. Look at them again; "
            "if you mean them all, confirm the new number."
        )


class KeptArgument(HiddenArgument):
    """The filter of an operation is kept and shown, so it cannot name what is hidden."""

    def __init__(self, argument: ArgumentIs) -> None:
        path = ".".join(argument.path)
        self.word = f"args.{path}:{argument.value}"
        RotaError.__init__(
            self,
            f"args.{path} cannot be in the filter of an operation: its value is hidden where jobs are shown, and the "
            "filter is kept and shown. Narrow by another argument, a subject or a tag.",
        )


class JobOperations(Bulk, Operations):
    """Bulk work on jobs of any state: the verbs of `sweep`, as operations."""

    async def match_jobs(self, verb: Verb, words: str) -> Matched:
        """How many jobs an operation would meet now; nothing is changed."""
        return await self.count(verb, (await self._jobs_wanted(words)).which())

    async def begin_job_operation(
        self,
        verb: Verb,
        words: str,
        *,
        reason: str | None = None,
        rate: float | None = None,
        expected: int | None = None,
    ) -> Operation:
        """Record that `verb` is to be done to every job that these words of the filter language mean now.

        `drive` does it. What is made later is not touched, however long it
        takes. `GrownMeanwhile` when many more match than were `expected`.
        """
        wanted = await self._jobs_wanted(words)
        matched = await self.count(verb, wanted.which())
        # Beyond the cap nobody knows how many there are: who was shown fewer must be asked.
        uncounted = matched.capped and expected is not None and expected < COUNT_CAP
        if expected is not None and (uncounted or grown(expected, matched.jobs)):
            raise GrownMeanwhile(expected, matched)
        return await self._begun(verb, wanted, matched, wanted.at, reason=reason, rate=rate)

    async def _jobs_wanted(self, words: str) -> JobsWanted:
        now = await self.store.now()
        meant = JobsWanted(words, now).which()
        for argument in meant.args:
            if argument.hidden:
                raise KeptArgument(argument)
        return JobsWanted(words, now, meant.tenant or self.tenant)

    async def _work(self, operation: Operation) -> Work:
        wanted, verb = operation.wanted, operation.verb
        if not (isinstance(wanted, JobsWanted) and isinstance(verb, Verb)):
            return await super()._work(operation)
        which = swept(verb, wanted.which())

        async def page(before: UUID | None) -> Sequence[Job]:
            return await self.store.find(which._replace(before=before, limit=PAGE))

        async def act(job: Job) -> str:
            now: datetime = await self.store.now()
            met = await self._one(
                verb, job, which.states, now, reason=operation.reason, about=operation.about
            )
            return "done" if met.done else "refused" if met.refused else "changed"

        return Work(page, act, lambda job: job.id)
