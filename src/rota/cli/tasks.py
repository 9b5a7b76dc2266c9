"""`rota tasks`: the tasks that workers made known, and the way back for one that is parked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota.cli import exits
from rota.cli.commands import Call, Group, with_admin
from rota.cli.words import ago, many, span

if TYPE_CHECKING:
    from datetime import datetime

    from rota.admin import Admin
    from rota.admin.tasks import TaskView

HEADERS = ("task", "status", "queue", "priority", "attempts", "timeout", "code version")


@click.group(
    "tasks",
    cls=Group,
    examples=("rota tasks list", "rota tasks release resize_image --reason 'the library is fixed'"),
)
def tasks() -> None:
    """Look at tasks, and release one that is parked."""


@tasks.command("list", examples=("rota tasks list", "rota tasks list --parked --json"))
@click.option(
    "--parked", "only_parked", is_flag=True, help="Only those whose jobs wait after too many crashes."
)
@with_admin
async def list_tasks(call: Call, admin: Admin, only_parked: bool) -> None:
    """List the tasks that workers made known.

    Columns: task, status (active or parked), queue, priority, attempts, timeout, code version.
    """
    found = [view for view in await admin.tasks() if view.parked or not only_parked]
    now = await admin.store.now()
    call.output.table(HEADERS, [_row(view) for view in found], records=[_record(view) for view in found])
    for view in found:
        if view.parked:
            call.output.words(f"{view.spec.name}: {_why(view, now)}")
    if not found:
        call.output.words(
            "No task is parked." if only_parked else "No task is known. A worker makes its tasks known."
        )
        exits.leave(exits.NOTHING)


@tasks.command(
    "release",
    examples=(
        "rota tasks release resize_image",
        "rota tasks release resize_image --reason 'memory was added'",
    ),
)
@click.argument("name")
@click.option("--reason", help="Why; kept in the audit.")
@with_admin
async def release(call: Call, admin: Admin, name: str, reason: str | None) -> None:
    """Let the jobs of a parked task run again.

    A task is parked when too many of its jobs killed their process under one code version. If nothing has changed,
    it will be parked again.
    """
    freed = await admin.release_task(name, reason=reason)
    if call.output.as_json:
        call.output.value({"task": name, "jobs": freed})
    call.output.words(f"The task {name} is released; {many(freed, 'job')} went back on the list.")


def _row(view: TaskView) -> tuple[object, ...]:
    spec = view.spec
    return (
        spec.name,
        "parked" if view.parked else "active",
        spec.queue,
        spec.priority,
        spec.retry.attempts,
        None if spec.timeout is None else span(spec.timeout),
        spec.code_version,
    )


def _record(view: TaskView) -> dict[str, Any]:
    spec = view.spec
    return {
        "task": spec.name,
        "status": "parked" if view.parked else "active",
        "queue": spec.queue,
        "priority": spec.priority,
        "retry": spec.retry.as_json(),
        "timeout": spec.timeout,
        "code_version": spec.code_version,
        "parked": [row._asdict() for row in view.parked],
    }


def _why(view: TaskView, now: datetime) -> str:
    last = view.parked[-1]
    return (
        f"parked {ago(last.parked_at, now)}: {many(last.crashes, 'job')} killed their process under code version "
        f"{last.code_version}; the last one: {last.what}. "
        f"Deploy a repaired version, or `rota tasks release {last.task}`."
    )
