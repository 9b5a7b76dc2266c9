"""One verb on all jobs that match, as an operation: it goes on in the server, and tells how far it is."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Body
from pydantic import Field

from rota._core.actions import Verb
from rota.admin.job_operations import GrownMeanwhile
from rota.web.api.jobs import FILTER, LANGUAGE
from rota.web.api.operations import SLOWEST, OperationShown, operation_shown, refuse_lower
from rota.web.api.shapes import Sent
from rota.web.asking import Asked
from rota.web.driving import drivers_of
from rota.web.problems import Problem
from rota.web.roles import Role, Routes
from rota.web.searching import SEARCHES

routes = Routes("jobs", "/jobs")


class Operating(Sent):
    """What is to be done to which jobs, and to how many of them at most."""

    verb: Literal["retry", "cancel", "hold", "release", "delete"] = Field(
        description="`delete` needs a manager, and takes only jobs that have ended."
    )
    filter: str = Field(max_length=FILTER, description=f"{LANGUAGE} Empty: all that the verb is for.")
    reason: str | None = Field(None, max_length=2000, description="Kept with the jobs and in the audit.")
    rate: float | None = Field(
        None, ge=SLOWEST, le=10_000, description="Jobs a second; null: as fast as they go."
    )
    expected: int | None = Field(
        None,
        ge=0,
        description="How many you were told would be met. If many more match now, nothing is begun (409).",
    )
    dry_run: bool = Field(False, description="Only count how many would be met.")


@routes.post("/operations", verb="operate", role=Role.OPERATOR, status_code=202, dependencies=SEARCHES)
async def operate(asked: Asked, wish: Annotated[Operating, Body()]) -> OperationShown:
    """Retry, cancel, hold, release or delete every job that matches now. It goes on here; `url` tells how far it is."""
    if wish.expected is None and not wish.dry_run:
        raise Problem(
            422,
            "expected-missing",
            "Say how many jobs you expect (`expected`), so that a filter which matches more is not a surprise; "
            "with `dry_run` it is only counted.",
        )
    return await begun_on_jobs(
        asked,
        Verb(wish.verb),
        wish.filter,
        reason=wish.reason,
        rate=wish.rate,
        expected=wish.expected,
        dry_run=wish.dry_run,
    )


async def begun_on_jobs(
    asked: Asked,
    verb: Verb,
    words: str,
    *,
    reason: str | None,
    rate: float | None = None,
    expected: int | None = None,
    dry_run: bool = False,
) -> OperationShown:
    """Begin an operation on jobs and drive it, or only count."""
    refuse_lower(asked, verb)
    admin = asked.admin
    if dry_run:
        matched = await admin.match_jobs(verb, words)
        return OperationShown(
            id=None,
            url=None,
            verb=verb,
            what=f"would {verb.value} {matched} jobs",
            wanted={"filter": words},
            actor=admin.actor,
            reason=reason,
            rate=rate,
            state=None,
            total=matched.jobs,
            capped=matched.capped,
        )
    drivers = drivers_of(asked.request.app)
    with drivers.room(asked.key):
        try:
            operation = await admin.begin_job_operation(
                verb, words, reason=reason, rate=rate, expected=expected
            )
        except GrownMeanwhile as error:
            matched = error.matched
            raise Problem(
                409, "grown", str(error), matched=matched.jobs, capped=matched.capped, expected=error.expected
            ) from error
        drivers.start(admin, operation, asked.key, asked.still_counts)
    return operation_shown(asked, operation)
