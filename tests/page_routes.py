"""One good call of every page, for the test of all pages by roles by tenants. A new route adds a line here."""

from __future__ import annotations

from typing import NamedTuple

from web_routes import (
    A_DEAD_JOB,
    Made,
    Stage,
    a_group,
    a_schedule,
    a_worker,
    an_operation,
    held,
    named,
    of,
    parked,
)


class Example(NamedTuple):
    """How to call a page so that it works."""

    path: Made | None = None
    """Makes what the path names, for this tenant; what it answers fills the path and the form."""
    form: dict[str, str] | None = None
    params: dict[str, str] | None = None
    shared: bool = False
    """True: it is about code, not about anybody's data, so that every tenant may look."""
    scoped: bool = True
    """False: it is about all tenants, so that somebody of one tenant may not ask (403)."""


async def a_token(stage: Stage, _tenant: str | None) -> dict[str, str]:
    return {"token_id": (await stage.admin.create_token("grafana")).token.id}


async def urgent(stage: Stage, tenant: str | None) -> dict[str, str]:
    return {"job_id": str(await stage.job(tenant)), "priority": "7"}


EXAMPLES: dict[str, Example] = {
    "page.overview": Example(),
    "page.failures": Example(),
    "page.failure": Example(a_group),
    "page.failure_decide": Example(
        a_group, form={"verb": "acknowledge", "reason": "known", "expected.pending_review": "1"}
    ),
    "page.failure_letter": Example(A_DEAD_JOB, form={"verb": "discard", "reason": "test data"}),
    "page.queues": Example(),
    "page.queue": Example(named("post"), shared=True),
    "page.queue_purge_form": Example(named("post"), shared=True),
    "page.queue_purge": Example(named("post"), form={"name": "post", "expected": "1000"}, shared=True),
    "page.tasks": Example(),
    "page.task": Example(named("mail"), shared=True),
    "page.task_enqueue": Example(named("mail"), form={"arg": '{"to": "ann"}'}, shared=True),
    "page.task_release": Example(parked, scoped=False),
    "page.jobs": Example(),
    "page.jobs_csv": Example(params={"filter": "state:dead"}),
    "page.jobs_json": Example(params={"filter": "state:dead"}),
    "page.view_save": Example(form={"name": "mine", "filter": "state:dead"}),
    "page.view_forget": Example(form={"name": "mine"}),
    "page.jobs_ticked": Example(form={"verb": "hold"}),
    "page.jobs_all": Example(params={"verb": "retry"}),
    "page.jobs_begin": Example(form={"verb": "retry", "filter": "queue:nothing-in-it", "expected": "0"}),
    "page.job": Example(of(Stage.job)),
    "page.job_retry": Example(of(Stage.dead), form={"reason": "fixed"}),
    "page.job_cancel": Example(of(Stage.job)),
    "page.job_force": Example(of(Stage.running)),
    "page.job_hold": Example(of(Stage.job)),
    "page.job_release": Example(of(held)),
    "page.job_delete": Example(of(Stage.job)),
    "page.job_prioritise": Example(urgent),
    "page.job_move": Example(of(Stage.job), form={"queue": "slow"}),
    "page.job_reveal": Example(of(Stage.job)),
    "page.job_form": Example(of(Stage.job)),
    "page.job_edit": Example(of(Stage.dead), form={"arg": '{"to": "bo"}'}),
    "page.activity": Example(params={"since": "1h"}),
    "page.operation": Example(an_operation),
    "page.operation_stop": Example(an_operation, form={"reason": "wrong filter"}),
    "page.operation_resume": Example(an_operation),
    "page.schedules": Example(),
    "page.schedule": Example(a_schedule, scoped=False),
    "page.schedule_pause": Example(a_schedule, form={"reason": "maintenance"}, scoped=False),
    "page.schedule_resume": Example(a_schedule, scoped=False),
    "page.schedule_run": Example(a_schedule, scoped=False),
    "page.schedule_reset": Example(a_schedule, scoped=False),
    "page.schedule_form": Example(a_schedule, scoped=False),
    "page.schedule_edit": Example(a_schedule, form={"timing": "0 4 * * *", "do": "save"}, scoped=False),
    "page.schedule_backfill": Example(
        a_schedule, form={"begin": "2026-01-01", "end": "2026-01-02"}, scoped=False
    ),
    "page.workers": Example(),
    "page.worker": Example(a_worker),
    "page.worker_drain": Example(a_worker, form={"reason": "deploy"}, scoped=False),
    "page.worker_stop": Example(a_worker, scoped=False),
    "page.system": Example(),
    "page.system_prune": Example(form={"expected": "0"}, scoped=False),
    "page.token_revoke": Example(a_token, scoped=False),
}
