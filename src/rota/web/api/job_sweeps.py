"""One verb on all jobs that match: counted first, then done, newest first, so many at a time; `next` goes on."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from rota._core.actions import Verb
from rota.web.api.jobs import FILTER, LANGUAGE, meant
from rota.web.api.shapes import JobId, Sent
from rota.web.asking import Asked
from rota.web.roles import Role, Routes
from rota.web.searching import SEARCHES

routes = Routes("jobs", "/jobs")

AT_ONCE = 1_000
SECONDS = 10.0
"""After so long a call answers what was done until then: a request may take only three times as long."""


class Sweep(Sent):
    """What is to be done to which jobs. Without `dry_run: false` they are only counted."""

    filter: str = Field(max_length=FILTER, description=f"{LANGUAGE} Empty: all that the verb is for.")
    reason: str | None = Field(None, max_length=2000)
    dry_run: bool = True
    limit: int = Field(AT_ONCE, ge=1, le=AT_ONCE, description="At most so many in this call.")
    before: JobId | None = Field(None, description="`next` of the call before: goes on below it.")


class Acting(Sweep):
    """The verbs that work on many jobs."""

    verb: Literal["retry", "cancel", "hold", "release"]


class SweepShown(BaseModel):
    """What became of the jobs that matched."""

    verb: str
    dry_run: bool
    matched: int = Field(description="Jobs that matched before anything was done; counting stops at 10,000.")
    capped: bool = Field(description="There are more than were counted.")
    done: int = 0
    asked: int = Field(0, description="Of those done: running jobs whose workers have yet to confirm.")
    refused: int = Field(0, description="Their state did not allow it.")
    changed: int = Field(0, description="Somebody else changed them at the same time.")
    more: bool = Field(
        description="Whether some that matched were not met: ask again, with `next` as `before`."
    )
    next: UUID | None = Field(None, description="The last job that was met, if there are more.")


@routes.post("/actions", verb="sweep", role=Role.OPERATOR, dependencies=SEARCHES)
async def sweep(asked: Asked, wanted: Acting) -> SweepShown:
    """Retry, cancel, hold or release every job that matches, each with its own fence and audit row."""
    return await _swept(asked, Verb(wanted.verb), wanted)


@routes.post("/purge", verb="purge", role=Role.MANAGER, dependencies=SEARCHES)
async def purge(asked: Asked, wanted: Sweep) -> SweepShown:
    """Delete every ended job that matches, with its history. The audit rows stay."""
    return await _swept(asked, Verb.DELETE, wanted)


async def _swept(asked: Asked, verb: Verb, wanted: Sweep) -> SweepShown:
    admin = asked.admin
    which = await meant(asked, wanted.filter, before=wanted.before)
    matched = await admin.count(verb, which)
    answer = SweepShown(
        verb=verb.value,
        dry_run=wanted.dry_run,
        matched=matched.jobs,
        capped=matched.capped,
        more=matched.jobs > 0,
    )
    if wanted.dry_run:
        return answer
    done = await admin.sweep(verb, which, reason=wanted.reason, limit=wanted.limit, seconds=SECONDS)
    more = done.last is not None and (matched.capped or matched.jobs > done.met)
    return answer.model_copy(update=done.counts | {"more": more, "next": done.last if more else None})
