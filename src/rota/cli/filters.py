"""Which jobs are meant: the same words and options for `list` and for every verb that works on many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rota._core.filtering import FilterError
from rota._core.job import State
from rota._core.job_filter import JobFilter
from rota.cli.params import JobId, state_option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.admin import Admin


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which jobs are meant; each one narrows."""
    for option in reversed(
        (
            state_option("Only jobs in this state; may be repeated."),
            click.option("--task", help="Only jobs of this task."),
            click.option("--queue", "-q", help="Only jobs in this queue."),
            click.option("--tenant", help="Only jobs of this tenant."),
            click.option("--subject", help="Only jobs about this subject."),
            click.option("--key", help="Only the job with this idempotency key."),
            click.option("--external-id", help="Only the job with this id of another system."),
            click.option("--correlation", "correlation_id", help="Only jobs of this correlation."),
            click.option("--parent", "parent_id", type=JobId(), help="Only jobs enqueued by this job."),
            click.option("--tag", help="Only jobs with this tag."),
        )
    ):
        command = option(command)
    return command


words_argument = click.argument("words", metavar="[FILTER]...", nargs=-1)
"""Words of the filter language, as docs/filters.md has them."""


async def filter_from(
    admin: Admin, options: dict[str, Any], words: Sequence[str] = (), **more: Any
) -> JobFilter:
    """Which jobs the words and the options mean together; each one narrows."""
    states = tuple(State(state) for state in options.pop("states", ()))
    asked = {"states": states, **options, **more}
    given = {name: value for name, value in asked.items() if value not in (None, (), False)}
    if not words:
        return JobFilter(**given)
    try:
        return await admin.filter(words, **given)
    except FilterError as error:
        raise click.UsageError(f"{error}") from error
