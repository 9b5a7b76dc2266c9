"""`rota jobs debug ID`: run a stored job here, to see what it does. The job itself stays as it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from rota._core.ids import public_id
from rota._core.job import Job, State
from rota._core.redaction import redacted, redacted_json
from rota.cli import exits
from rota.cli.commands import Call, Command, whoami, with_call
from rota.cli.locate import find_app
from rota.cli.params import JobId
from rota.cli.words import as_json, many, span
from rota.errors import UnknownTask

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.job import NewJob
    from rota._core.outcome import Transition
    from rota.app import Rota
    from rota.cli.rehearsal import Rehearsed

HEADERS = ("task", "queue", "payload")
ASK = {
    State.RUNNING: "A worker runs this job at this moment; what it does would be done twice.",
    State.COMPLETED: "This job has completed; what it did would be done a second time.",
    State.PARTIAL: "This job has completed in part; what it did would be done a second time.",
}


@click.command(
    "debug", cls=Command, examples=("rota jobs debug ID --pdb", "rota jobs debug ID --app shop.jobs:app")
)
@click.argument("job_id", metavar="ID", type=JobId())
@click.option(
    "--pdb", "with_pdb", is_flag=True, help="Stop at the first line, and where an exception is raised."
)
@click.option("--app", metavar="APP", help="The app that has the task; else the one that is here.")
@click.option(
    "--enqueue", "keep", is_flag=True, help="Store the jobs that it enqueues; else they are only listed."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@with_call
def debug(call: Call, job_id: UUID, *, with_pdb: bool, app: str | None, keep: bool, yes: bool) -> None:
    """Run a stored job here with its stored arguments, without claiming or settling it.

    The task runs for real: mails are sent, rows are written. Only the job stays as it is, in any state, and what the
    task enqueues is listed and not stored; what it writes in current_job().transaction() is undone. The exit code is
    1 if it fails.
    """
    import asyncio

    found = find_app(app, call.settings().app)
    if call.url is not None:
        found._url, found._settings, found._store = call.url, None, None  # noqa: SLF001 - the flag wins, also for handlers
    call.announce_starts()
    asyncio.run(_debug(call, found, job_id, with_pdb=with_pdb, keep=keep, yes=yes))


async def _debug(call: Call, app: Rota, job_id: UUID, *, with_pdb: bool, keep: bool, yes: bool) -> None:
    from rota.admin import Admin
    from rota.cli.rehearsal import rehearse
    from rota.cli.stepping import stepped

    store = app.store
    try:
        admin = Admin(store, actor=whoami())
        job = await admin.job(job_id)
        if job.task not in app.tasks:
            raise UnknownTask(job.task, app.tasks)
        if job.state in ASK:
            call.output.confirm(f"{ASK[job.state]} Run {job.task} here all the same?", yes=yes)
        call.output.words(
            f"Running {job.task} for job {job.id} ({job.state}) here, for real. The job itself stays as it is."
        )
        done = await rehearse(app, job, keep=keep, wrap=stepped if with_pdb else None)
        failed = _report(call, job, done, keep=keep)
    finally:
        await store.close()
    if failed:
        exits.leave(exits.PROBLEMS)


def _report(call: Call, job: Job, done: Rehearsed, *, keep: bool) -> bool:
    """Say what it did; whether it failed."""
    move, output = done.transition, call.output
    if move.failure is not None and move.failure.type.endswith("BdbQuit"):
        output.words("Left the debugger. The job is as it was.")
        return False
    if output.as_json:
        output.value(_record(job, done, kept=keep))
        return move.failure is not None
    if move.failure is not None and move.failure.stack:
        output.words(move.failure.stack.rstrip())
    output.words(f"{_ended(move)} It took {span(done.took)}.")
    if move.result_json is not None:
        output.text(as_json(json.loads(move.result_json)))
    if done.undone:
        output.words("What it wrote in current_job().transaction() was undone, as the job stays as it is.")
    if done.enqueued:
        stored = "stored" if keep else "not stored (--enqueue stores what it enqueues)"
        output.words(f"It enqueued {many(len(done.enqueued), 'job')}, {stored}:")
        rows = [(new.task, new.queue, redacted_json(new.payload_json)) for new in done.enqueued]
        output.table(HEADERS, rows, records=())
    return move.failure is not None


def _ended(move: Transition) -> str:
    failure = move.failure
    if failure is not None:
        said = f"It failed ({failure.error_class}): {failure.message}."
        if move.to is State.DEAD:
            return f"{said} In a worker the job would be dead now."
        assert move.run_at is not None
        pause = (move.run_at - (move.job.claimed_at or move.run_at)).total_seconds()
        return f"{said} In a worker it would be tried again after {span(max(pause, 0.0))}."
    if move.to is State.PENDING:
        why = f" ({move.reason})" if move.reason else ""
        return f"It asked to be run later{why}." if move.verb == "snooze" else f"It was not run{why}."
    why = f" ({move.reason})" if move.reason else ""
    return f"It ended as {move.to}{why}."


def _record(job: Job, done: Rehearsed, *, kept: bool) -> dict[str, Any]:
    move = done.transition
    failure = move.failure
    return {
        "id": str(job.id),
        "public_id": public_id(job.id),
        "task": job.task,
        "state": job.state.value,
        "would_become": move.to.value,
        "verb": move.verb,
        "took": round(done.took, 3),
        "result": None if move.result_json is None else json.loads(move.result_json),
        "reason": move.reason,
        "error": None
        if failure is None
        else {
            "class": failure.error_class.value,
            "type": failure.type,
            "message": failure.message,
            "stack": failure.stack,
        },
        "enqueued": [_new(new) for new in done.enqueued],
        "enqueued_stored": kept,
        "transaction_undone": done.undone,
    }


def _new(new: NewJob) -> dict[str, Any]:
    return {"task": new.task, "queue": new.queue, "payload": redacted(json.loads(new.payload_json))}
