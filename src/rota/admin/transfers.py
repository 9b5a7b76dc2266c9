"""Jobs out of one store and into another: read in pages, written in batches, each of them under a name in the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

from rota._core.actions import Audit
from rota._core.job import Job, NewJob, State
from rota._core.job_filter import JobFilter
from rota._core.payload import LIMIT_BYTES
from rota.admin.reads import Reads
from rota.admin.scope import OutOfScope
from rota.admin.transfer_lines import DELETED, LineWrong, Stays, read, written
from rota.errors import EnqueueError
from rota.stores.contract import Stored

PAGE = 100
"""Jobs that are read at once: payloads may be large."""
BATCH = 200
"""Lines that are stored at once."""


@dataclass
class Imported:
    """What became of the lines so far."""

    lines: int = 0
    stored: int = 0
    already: int = 0
    """Jobs whose id is there: from a run before, or from another file."""
    stays: Counter[str] = field(default_factory=Counter)
    """Those that are not imported by the rule, by reason."""
    wrong: int = 0


class Trouble(LineWrong):
    """A line that was not imported, with its number."""

    def __init__(self, line: int, why: str) -> None:
        self.line = line
        super().__init__(f"line {line:,}: {why}")


class Transfers(Reads):
    """Export and import."""

    async def export(
        self, wanted: JobFilter, *, said: str = "", reveal: bool = False, reason: str | None = None
    ) -> AsyncIterator[list[str]]:
        """The jobs that match as lines of JSON, oldest first, page by page.

        With `reveal` they have what is hidden from most, and the audit says so before the first line is read, with
        the filter as it was `said`.
        """
        if reveal:
            about = f"export:{uuid4()}"
            await self.store.note(
                Audit(self.actor, "export_revealed", None, reason, after=said or "all jobs", about=about)
            )
        wanted = wanted._replace(
            oldest_first=True, by_priority=False, before=None, before_priority=None, limit=PAGE, brief=False
        )
        while True:
            page = await self.store.find(wanted)
            yield [await self._line_of(job, reveal=reveal) for job in page]
            if len(page) < PAGE:
                return
            wanted = wanted._replace(before=page[-1].id)

    async def _line_of(self, job: Job, *, reveal: bool) -> str:
        tried = job.attempt > 1 or job.losses or job.error_class or (job.attempt and not job.state.terminal)
        attempts = await self.store.attempts(job.id) if tried and job.state is not State.RUNNING else ()
        return written(job, attempts, reveal=reveal)

    async def import_begins(self, source: str, *, reason: str | None = None) -> None:
        """Say in the audit that jobs are brought in, before the first one is."""
        if self.tenant is not None:
            raise OutOfScope(self.tenant, "an import")
        await self.store.note(
            Audit(self.actor, "import", None, reason, after=source, about=f"import:{uuid4()}")
        )

    async def import_lines(
        self,
        lines: Sequence[str],
        sum_up: Imported,
        *,
        hold: bool = False,
        dry_run: bool = False,
        payload_limit: int = LIMIT_BYTES,
    ) -> list[Trouble]:
        """Store the jobs of these lines, and add up what became of them; the lines that were not taken, and why.

        A job that is there is left as it is, so that the same lines can be brought again.
        """
        now = await self.store.now()
        troubles: list[Trouble] = []
        coming: dict[int, NewJob] = {}
        for number, line in enumerate(lines, sum_up.lines + 1):
            if not line.strip():
                continue  # an editor's last line
            try:
                found = read(line, now, payload_limit=payload_limit)
            except LineWrong as error:
                troubles.append(Trouble(number, str(error)))
                continue
            if isinstance(found, Stays):
                sum_up.stays[found.why] += 1
            else:
                coming[number] = found._replace(held=found.held or hold)
        sum_up.lines += len(lines)
        there = await self._known_ids([job.id for job in coming.values()])
        new = _once(coming, there, sum_up)
        if dry_run:
            sum_up.stored += len(new)
        else:
            troubles += await self._bring_in(new, sum_up)
        sum_up.wrong += len(troubles)
        return sorted(troubles, key=lambda one: one.line)

    async def _known_ids(self, ids: list[UUID]) -> set[UUID]:
        found = {job.id for job in await self.store.get(ids)}
        return found | {row.id for row in await self.store.archived(ids)}

    async def _bring_in(self, new: dict[int, NewJob], sum_up: Imported) -> list[Trouble]:
        if not new:
            return []
        try:
            answers = await self.store.enqueue(list(new.values()))
        except EnqueueError as error:
            if len(new) == 1:
                return [Trouble(next(iter(new)), str(error))]
            # One bad job must not keep its neighbours out.
            return [one for number, job in new.items() for one in await self._bring_in({number: job}, sum_up)]
        # A store says yes to an id that it had before, and lets no job that was deleted come back: so we look.
        landed = {job.id for job in await self.store.get([job.id for job in new.values()])}
        troubles = []
        for number, job, answer in zip(new, new.values(), answers, strict=True):
            if answer.stored is not Stored.CREATED:
                troubles.append(Trouble(number, _taken(job, answer.id)))
            elif job.id in landed:
                sum_up.stored += 1
            else:
                sum_up.stays[DELETED] += 1
        return troubles


def _taken(job: NewJob, holder: UUID) -> str:
    key = f"key {job.key!r}" if job.key is not None else f"unique key {job.unique_key!r}"
    return f"job {job.id}: another job here, {holder}, has its {key}. Nothing was changed; end one of them."


def _once(coming: dict[int, NewJob], there: set[UUID], sum_up: Imported) -> dict[int, NewJob]:
    """Those that are not there; a line that stands twice in the file counts the second time as there."""
    new: dict[int, NewJob] = {}
    for number, job in coming.items():
        if job.id in there:
            sum_up.already += 1
        else:
            new[number] = job
            there.add(job.id)
    return new
