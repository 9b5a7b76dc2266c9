"""`rota tail`: what happens to jobs, line by line, as it happens."""

from __future__ import annotations

import asyncio
import select
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from rota._core.happening import Ended, Happened, Happening, HappeningFilter, Kind, Mark, Memory, life_of
from rota._core.job_filter import JobFilter
from rota.cli import exits, logs
from rota.cli.commands import Call, Command, with_admin
from rota.cli.filters import filter_from, words_argument
from rota.cli.params import JobId, Length
from rota.cli.words import as_json, cell, span
from rota.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from rota._core.job_log import LogTail
    from rota.admin import Admin

SHARE = 10
"""Of the time, looking takes at most one part in so many: a slow or busy store is asked less often."""
STYLES = {
    Kind.COMPLETED: "green",
    Kind.PARTIAL: "yellow",
    Kind.FAILED: "yellow",
    Kind.DIED: "bold red",
    Kind.STARTED: "cyan",
    Kind.ACTED: "magenta",
    Kind.CANCELLED: "dim",
}


@click.command(
    "tail",
    cls=Command,
    examples=(
        "rota tail",
        "rota tail --task charge --since 10m",
        "rota tail queue:mail tenant:acme",
        "rota tail --tenant acme --json | jq -r 'select(.kind == \"died\") | .why'",
        "rota tail --job 0198c1a2-…                  one job and its log, until it ends",
    ),
)
@click.option("--task", help="Only jobs of this task.")
@click.option("--queue", help="Only jobs of this queue.")
@click.option("--tenant", help="Only jobs of this tenant.")
@click.option(
    "--job", "job_id", type=JobId(), help="Only this job: its whole life and its log, until it ends."
)
@click.option(
    "--since",
    type=Length(),
    metavar="DURATION",
    help="Begin with what happened in the last so long; else now.",
)
@click.option(
    "--every", type=Length(), default=1.0, metavar="DURATION", show_default="1s", help="How often to look."
)
@words_argument
@with_admin
async def tail(
    call: Call,
    admin: Admin,
    *,
    words: tuple[str, ...],
    task: str | None,
    queue: str | None,
    tenant: str | None,
    job_id: UUID | None,
    since: float | None,
    every: float,
) -> None:
    """Follow what happens to jobs, line by line.

    Enqueued, started, completed, failed, died, cancelled, acted on by somebody. Ends with Ctrl-C. With --json each line
    is one JSON object. FILTER is task:NAME, queue:NAME or tenant:NAME, like the options.

    It looks at the store once a second, at what is new only, and less often when the store is slow; when much
    happens at once it shows the newest 500 of each kind and says so. A run that is over within a second shows its
    end only. While the store is away it waits, and then goes on.

    While jobs are kept for less than a day, or removed by hand, ends may be missing here: new ones are then stored in
    room that older ones left, where it does not look. `rota jobs list` has them.
    """
    logs.silence()
    call.if_stopped = ""
    lines = Lines(call)
    wanted = await _meant(admin, words, {"task": task, "queue": queue, "tenant": tenant})
    looking = _one(admin, job_id, lines) if job_id else _all(admin, wanted, since, lines)
    look = await looking
    while True:
        began = time.monotonic()
        if not await lines.kept(look):
            return
        if _nobody_reads():
            raise exits.ReaderGone
        took = 0.0 if lines.away_since is not None else time.monotonic() - began
        await asyncio.sleep(max(0.05, every, took * (SHARE - 1)))


async def _meant(admin: Admin, words: Sequence[str], options: dict[str, Any]) -> HappeningFilter:
    """What the words and the options mean together. What happens carries a task, a queue and a tenant, and no more."""
    said = await filter_from(admin, options, words)
    if said != JobFilter(task=said.task, queue=said.queue, tenant=said.tenant):
        raise click.UsageError(
            f"{' '.join(words)!r} asks for more than what happens can tell: follow by task:, queue: or tenant:, one "
            "job by --job ID, and look for others by `rota jobs list`."
        )
    return HappeningFilter(said.task, said.queue, said.tenant)


def _nobody_reads() -> bool:
    """Whether whoever read our lines has closed them: without a new line, nothing else would tell."""
    try:
        end = sys.stdout.fileno()
    except (OSError, ValueError):  # no file, as in a test
        return False
    asked = select.poll()
    asked.register(end, 0)
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in asked.poll(0))


async def _all(admin: Admin, wanted: HappeningFilter, since: float | None, lines: Lines) -> Callable[[], Any]:
    start = await admin.store.now() - timedelta(seconds=since or 0.0)
    mark, memory = Mark(start), Memory()
    lines.say("Following what happens; Ctrl-C ends it.")

    async def look() -> bool:
        nonlocal mark
        found = await admin.happened(mark, wanted)
        begins = start if mark.since == start else None
        mark = found.mark
        for one in memory.new(found):
            if (
                begins is None or one.at >= begins
            ):  # a first look reaches a little further back than was asked for
                lines.show(one)
        if found.more:
            lines.say(
                "… more happened than is shown; --task, --queue, --tenant or a shorter --since narrow it."
            )
        return True

    return look


async def _one(admin: Admin, job_id: UUID, lines: Lines) -> Callable[[], Any]:
    await admin.job(job_id)  # one that is not there is said at once
    memory, shown = Memory(), dict[int, int]()

    async def look() -> bool:
        view, tails = await admin.show(job_id), await admin.logs(job_id)
        ended = [
            Ended(one.ended_at, one.version, one.attempt, one.started_at, f"{one.error_type}: {one.message}")
            for one in view.attempts
        ]
        life = life_of(view.job, ended, view.audit)
        lines.mixed(memory.new(Happened(life, Mark(view.job.created_at))), _news_of(tails, shown))
        return not view.job.state.terminal

    return look


def _news_of(tails: Sequence[LogTail], shown: dict[int, int]) -> list[tuple[Any, int, str]]:
    """The lines of each attempt's log that were not shown yet; the store keeps the newest fifty of each."""
    news: list[tuple[Any, int, str]] = []
    for one in tails:
        fresh = min(one.written - shown.get(one.version, 0), len(one.lines))
        shown[one.version] = one.written
        news += [
            (line.at, one.attempt, f"{line.level.lower()}: {line.message}")
            for line in one.lines[len(one.lines) - fresh :]
        ]
    return news


class Lines:
    """Where lines go, and what is said when the store is away."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.away_since: float | None = None

    def say(self, text: str) -> None:
        self.call.output.words(text)

    async def kept(self, look: Callable[[], Any]) -> bool:
        """One look; whether to go on. A store that is away is said once, and once more when it is back."""
        try:
            going_on: bool = await look()
        except StoreUnavailable as error:
            if self.away_since is None:
                self.away_since = time.monotonic()
                self.say(f"rota: {error} Waiting for it; what happens meanwhile is shown then.")
            return True
        if self.away_since is not None:
            self.say(f"The store is back after {span(time.monotonic() - self.away_since)}.")
            self.away_since = None
        return going_on

    def mixed(self, news: Sequence[Happening], log: Sequence[tuple[Any, int, str]]) -> None:
        """Happenings and log lines of one job, in order of time."""
        everything: list[tuple[Any, int, Any]] = [(one.at, 0, one) for one in news]
        everything += [(line[0], 1, line) for line in log]
        for _, kind, one in sorted(everything, key=lambda entry: entry[:2]):
            if kind == 0:
                self.show(one)
            else:
                self._log(*one)

    def _log(self, at: Any, attempt: int, said: str) -> None:
        if self.call.output.as_json:
            self.call.output.text(
                as_json({"at": at, "kind": "log", "attempt": attempt, "said": said}, indent=None)
            )
        else:
            self._put(f"{at:%H:%M:%S}  log        ", "dim", cell(said))

    def show(self, one: Happening) -> None:
        if self.call.output.as_json:
            self.call.output.text(as_json(one._asdict() | {"kind": one.kind.value}, indent=None))
            return
        who = f"{one.queue or ''}{f'/{one.tenant}' if one.tenant else ''}"
        parts = [one.task or "(gone)", str(one.job_id), who, *_told(one)]
        self._put(
            f"{one.at:%H:%M:%S}  {one.kind.value:<9}  ",
            STYLES.get(one.kind, ""),
            cell("  ".join(filter(None, parts))),
        )

    def _put(self, head: str, style: str, rest: str) -> None:
        if not self.call.output.terminal:
            self.call.output.text(head + rest)
            return
        from rich.text import Text

        self.call.output.console().print(Text.assemble((head, style), rest), soft_wrap=True)


def _told(one: Happening) -> list[str]:
    """What is worth knowing besides."""
    said = []
    if (
        one.attempt is not None
        and one.kind is not Kind.CANCELLED
        and (one.attempt > 1 or one.kind is Kind.FAILED)
    ):
        said.append(f"attempt {one.attempt} of {one.max_attempts}")
    if one.wait is not None and one.kind in (Kind.STARTED, Kind.COMPLETED, Kind.PARTIAL):
        said.append(f"waited {span(max(0.0, one.wait))}")
    if one.run is not None:
        said.append(f"ran {span(max(0.0, one.run))}")
    if one.why:
        said.append(one.why if len(one.why) <= 200 else f"{one.why[:199]}…")
    if one.next_at is not None:
        said.append(f"again in {span(max(0.0, (one.next_at - one.at).total_seconds()))}")
    return said
