"""Values of the command line in the forms people write them: ids, lengths of time, moments, states."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from rota._core.durations import seconds
from rota._core.ids import parse_id
from rota._core.job import State
from rota._core.numbers import HOURS_KEPT

if TYPE_CHECKING:
    from collections.abc import Callable


class JobId(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A job's id: a UUID, or its public Base32 form."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> UUID:
        if isinstance(value, UUID):
            return value
        try:
            return parse_id(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class WorkerId(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """The id of a worker's session."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> UUID:
        try:
            return UUID(str(value))
        except ValueError:
            self.fail(f"{value!r} is no worker's id. `rota workers` has them.", param, ctx)


class IdOrWord(JobId):
    """A job's id, or a word of the filter language: that has a field and a sign."""

    name = "id or filter"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and any(sign in value for sign in ":<>"):
            return value
        return super().convert(value, param, ctx)


class Length(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A length of time in seconds, written `30s`, `5m`, `1h30m` or `90`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            number: float | None = float(value)
        except ValueError:
            number = None
        try:
            return seconds(value if number is None else number)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Stretch(Length):
    """How far back numbers are asked for: no further than they are kept, or rates would be of time without numbers."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        length = super().convert(value, param, ctx)
        if not 1.0 <= length <= HOURS_KEPT.total_seconds():
            self.fail(
                f"{value!r} is no time that numbers are kept of: give from a second to {HOURS_KEPT.days} days, such as "
                "15m, 24h or 7d.",
                param,
                ctx,
            )
        return length


class Moment(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A moment in ISO form; without a zone it is local time."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(value).astimezone()
        except (ValueError, OverflowError):  # the calendar's first and last days have no other zones
            self.fail(
                f"{value!r} is not a moment; write it like 2026-03-01T09:30 or 2026-03-01T09:30+01:00.",
                param,
                ctx,
            )


def state_option(help_text: str) -> Callable[[Any], Any]:
    return click.option(
        "--state",
        "states",
        multiple=True,
        type=click.Choice([state.value for state in State], case_sensitive=False),
        help=help_text,
    )
