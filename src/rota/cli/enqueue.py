"""`rota enqueue`: one job by hand, checked before it is stored."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rota._core.ids import public_id
from rota.cli import arguments, exits
from rota.cli.commands import Call, Command, call_of, whoami, with_call
from rota.cli.locate import load_app, reference
from rota.cli.params import Length, Moment
from rota.cli.ticking import Tick, for_tick
from rota.cli.words import as_json, span
from rota.errors import KeyConflict, UnknownTask

if TYPE_CHECKING:
    from rota._core.job import Job, NewJob
    from rota.app import Rota
    from rota.stores.contract import Enqueued, Store

OUTPUT = "\0output"
"""What a bare --json stands for: the answer as JSON, where `--json FILE` is the payload."""


def _take_json(ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> str | None:
    if OUTPUT in values:
        call_of(ctx).output.as_json = True
    paths = [value for value in values if value != OUTPUT]
    if len(paths) > 1:
        raise click.UsageError("give one --json FILE: a job has one payload.", ctx)
    return _read(paths[0]) if paths else None


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise exits.Wrong(
            f"the payload {path!r} cannot be read: {reason}. Give a file of JSON, or - for stdin; "
            "for JSON output put a bare --json last."
        ) from error


@click.command(
    "enqueue",
    cls=Command,
    examples=(
        "rota enqueue send_email to=ann@example.org account_id=7",
        "rota enqueue resize sizes:='[100, 200]' --in 5m --queue images",
        "rota enqueue import_feed --json feed.json --key feed-2026-03-01",
        "rota enqueue lifecycle_eval --tick day",
        'echo \'{"name": "Ann"}\' | rota enqueue greet --json - --wait',
    ),
)
@click.argument("task")
@click.argument("pairs", metavar="[NAME=VALUE]...", nargs=-1)
@click.option(
    "--json",
    "document",
    multiple=True,
    is_flag=False,
    flag_value=OUTPUT,
    metavar="[FILE|-]",
    callback=_take_json,
    help="FILE or -: the payload as JSON. Bare, at the end: print JSON.",
)
@click.option("--in", "delay", type=Length(), metavar="DURATION", help="Due after so long: 30s, 5m, 1h30m.")
@click.option(
    "--at",
    type=Moment(),
    metavar="TIME",
    help="Due then, such as 2026-03-01T09:30; local time without a zone.",
)
@click.option("--key", help="Idempotency key: a second job with it is the first one.")
@click.option(
    "--tick",
    type=Tick(),
    is_flag=False,
    flag_value="minute",
    metavar="[TIME|minute|hour|day]",
    help="For cron jobs: one job for these arguments and this time, however often it is called. Bare: this minute.",
)
@click.option("--queue", "-q", help="Another queue than the task's own.")
@click.option("--priority", type=click.IntRange(0, 32_767), help="Lower runs first; 100 is normal.")
@click.option("--tenant", help="On whose behalf.")
@click.option(
    "--correlation", "correlation_id", help="The correlation that it belongs to; else one of its own."
)
@click.option("--wait", is_flag=True, help="Wait for the job and print its result as JSON.")
@click.option(
    "--timeout", type=Length(), metavar="DURATION", help="With --wait: no longer than this; the job goes on."
)
@click.option(
    "--app", metavar="APP", help="The app whose signature checks the arguments; else the one that is here."
)
@with_call
def enqueue(call: Call, *, wait: bool, timeout: float | None, app: str | None, **given: Any) -> None:
    """Enqueue one job.

    Arguments are written name=value, or name:=JSON. They are checked against the function's signature when the app
    can be found here, else against what workers have published in the store.
    """
    import asyncio

    tick = given.pop("tick")
    wish = Wish(given.pop("task"), given.pop("pairs"), given.pop("document"), given)
    if tick is not None and given["key"] is not None:
        raise click.UsageError("--tick and --key were both given; the tick is the key.")
    if given["delay"] is not None and given["at"] is not None:
        raise click.UsageError("--in and --at were both given; a job becomes due once.")
    if timeout is not None and not wait:
        raise click.UsageError("--timeout needs --wait.")
    asyncio.run(_enqueue(call, wish, app, tick, wait=wait, limit=timeout))


class Wish(NamedTuple):
    """One job as it was asked for."""

    task: str
    pairs: tuple[str, ...]
    document: str | None
    options: dict[str, Any]

    def terms(self) -> dict[str, Any]:
        """The options in the words of a new job."""
        from rota.options import terms

        given = {name: value for name, value in self.options.items() if value is not None}
        try:
            return terms({**given, "created_by": f"cli:{whoami()}"})
        except (ValueError, TypeError) as error:
            raise exits.Wrong(str(error)) from error

    def payload(self, schema: arguments.Schema) -> dict[str, Any]:
        return arguments.payload_from(self.pairs, self.document, schema)


async def _enqueue(
    call: Call, wish: Wish, app: str | None, tick: str | None, *, wait: bool, limit: float | None
) -> None:
    from rota.admin import Admin
    from rota.cli import waiting
    from rota.stores.contract import Stored

    found = _app_here(call, app)
    store = call.open_store(found)
    try:
        job = await _prepared(found, store, wish, ticking=tick is not None)
        if tick is not None:
            job = for_tick(job, tick, await store.now())
        if found is not None and found.pressure is not None:
            await found.pressure.admit([job])
        [answer] = await store.enqueue([job])
        if answer.stored is Stored.CONFLICT:
            raise KeyConflict(job.key or "", answer.id)
        _say(call, job, answer, quiet=wait)
        if wait:
            call.if_stopped = f"Stopped waiting. The job stays; `rota jobs cancel {answer.id}` takes it back."
            ended = await waiting.ended(call.output, Admin(store, actor=whoami()), answer.id, limit=limit)
            _result(call, ended, answer)
    finally:
        await store.close()


def _app_here(call: Call, given: str | None) -> Rota | None:
    """The app, where there is one; a broken one is an error, not a reason to check less."""
    try:
        named = reference(given, call.settings().app)
    except exits.Wrong:
        return None
    return load_app(named)


async def _prepared(app: Rota | None, store: Store, wish: Wish, *, ticking: bool) -> NewJob:
    from rota.admin.submitting import from_registry

    if app is not None and wish.task in app.tasks:
        task = app.tasks[wish.task]
        payload = wish.payload(json.loads(task.spec().schema_json))
        return task.prepare((), payload, wish.terms(), by_schedule=ticking)
    published = {spec.name: spec for spec in await store.tasks()}
    if wish.task not in published:
        raise UnknownTask(wish.task, {*published, *(app.tasks if app is not None else ())}, published=True)
    spec = published[wish.task]
    payload = wish.payload(json.loads(spec.schema_json))
    return from_registry(spec, payload, wish.terms(), by_schedule=ticking)


def _say(call: Call, job: NewJob, answer: Enqueued, *, quiet: bool) -> None:
    stored = answer.stored.value
    if answer.created:
        due = "due now"
        if job.run_at is not None:
            due = f"due at {job.run_at:%Y-%m-%d %H:%M:%S %Z}"
        elif job.delay:
            due = f"due in {span(job.delay)}"
        call.output.words(f"Enqueued {job.task} as {answer.id} in queue {job.queue!r}, {due}.")
    else:
        call.output.words(f"A job with that key is there already: {answer.id} ({stored}).")
    if quiet or call.output.terminal:
        return
    record = {"id": str(answer.id), "public_id": public_id(answer.id), "task": job.task, "stored": stored}
    if call.output.as_json:
        call.output.value(record)
    else:
        call.output.text(f"{answer.id}\t{stored}")


def _result(call: Call, job: Job, answer: Enqueued) -> None:
    if call.output.as_json:
        call.output.value(
            {"id": str(job.id), "stored": answer.stored.value, "state": job.state.value, "result": job.result}
        )
    else:
        call.output.text(as_json(job.result))
