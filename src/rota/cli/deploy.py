"""`rota deploy`: make an app's tasks and schedules known; `rota deploy check`: what that would meet."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from rota.cli import exits
from rota.cli.commands import Call, Group, call_of, whoami
from rota.cli.words import many

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rota._core.deploy import Finding, Release
    from rota.admin import Admin
    from rota.app import Rota

HEADERS = ("level", "kind", "subject", "what", "fix")
PUBLISH = "publish"


class DeployGroup(Group):
    """`rota deploy APP` publishes; every other verb is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not {"-h", "--help", *self.commands} & set(args):
            args = [PUBLISH, *args]
        return super().parse_args(ctx, args)


@click.group(
    "deploy",
    cls=DeployGroup,
    examples=(
        "rota deploy check jobs.py                    in CI, with the address of production",
        "rota deploy check shop.jobs:app --strict     warnings count too",
        "rota deploy jobs.py                          make its tasks and schedules known",
    ),
)
def deploy() -> None:
    """Check a deploy, and make new code known before its workers start."""


@deploy.command("check", examples=("rota deploy check jobs.py", "rota deploy check --strict --json"))
@click.argument("app", required=False)
@click.option("--strict", is_flag=True, help="Exit 1 for warnings too.")
@click.option(
    "--sample",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Payloads to try of each task and payload version.",
)
def check(app: str | None, strict: bool, sample: int) -> None:
    """Compare this code with what waits in the store, and change nothing.

    Bad: migrations that are pending, tasks that are gone while jobs of them wait, waiting payloads that this code
    cannot read. Warnings: schedules that change or stop, tasks that move to another queue. Columns: level, kind,
    subject, what, fix. Exit 1 if anything is bad.
    """

    async def work(call: Call, admin: Admin, release: Release) -> None:
        found = await admin.deploy_check(release, sample=sample)
        _show(call, found, verbose=call.verbose)
        bad = sum(finding.level == "bad" for finding in found)
        warned = sum(finding.level == "warn" for finding in found)
        call.output.words(
            f"{many(bad, 'problem')}, {many(warned, 'warning')}." if bad or warned else "Ready to deploy."
        )
        if bad or (strict and warned):
            exits.leave(exits.PROBLEMS)

    _with_release(app, work)


@deploy.command(PUBLISH, examples=("rota deploy jobs.py", "rota deploy publish jobs.py"))
@click.argument("app", required=False)
def publish(app: str | None) -> None:
    """Make an app's tasks and schedules known, without starting a worker.

    Then SQL, the command line and the pages can enqueue what is new. Workers do the same when they start. `rota
    deploy APP` is short for it.
    """

    async def work(call: Call, admin: Admin, release: Release) -> None:
        done = await admin.publish(release)
        if call.output.as_json:
            call.output.value(done._asdict())
        call.output.words(
            f"{many(len(done.tasks), 'task')} and {many(len(done.schedules), 'schedule')} of code version "
            f"{done.code_version} are known now."
        )

    _with_release(app, work)


def _with_release(app: str | None, work: Callable[[Call, Admin, Release], Awaitable[None]]) -> None:
    """Import the app, open its store, and hand both on."""
    from rota.admin import Admin
    from rota.cli.worker import load

    call = call_of(click.get_current_context())
    found = load(call, app)

    async def run() -> None:
        try:
            await work(call, Admin(found.store, actor=whoami()), _release(found))
        finally:
            await found.close()

    asyncio.run(run())


def _release(app: Rota) -> Release:
    from rota.admin.deploy import release_of
    from rota.worker.code import code_version

    settings = app.settings
    return release_of(
        app.tasks,
        app.schedules,
        queues=app.queues,
        maintenance=settings.maintenance,
        ticking=settings.schedules,
        code_version=code_version(app),
    )


def _show(call: Call, found: list[Finding], *, verbose: bool) -> None:
    """All in JSON and with -v; else what is well is left out where something is not."""
    shown: list[Any] = found
    if not verbose and not call.output.as_json and any(finding.level != "ok" for finding in found):
        shown = [finding for finding in found if finding.level != "ok"]
    call.output.table(
        HEADERS, [tuple(finding) for finding in shown], records=[finding._asdict() for finding in shown]
    )
