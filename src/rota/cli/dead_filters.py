"""Which dead letters are meant, since when, and how fast: the options that the dead-letter commands share."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from rota._core.dead_letter import DeadFilter
from rota._core.review import Review
from rota.cli.params import Length, Moment

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hour": 3600.0}


class Since(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A moment, or how long ago: `2026-03-01T09:30`, `90m`, `2d`."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime | timedelta:
        if isinstance(value, datetime | timedelta):
            return value
        if re.match(r"\d{4}-", value):
            return Moment().convert(value, param, ctx)
        return timedelta(seconds=Length().convert(value, param, ctx))


class Rate(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """So many a second, written `10/s`, `100/min`, `2000/h` or `10`."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:/([a-z]+))?", value.strip().lower())
        if found is None or found[2] not in {None, *_SECONDS} or float(found[1]) <= 0:
            self.fail(f"{value!r} is not a rate; write it like 10/s, 100/min or 2000/h.", param, ctx)
        return float(found[1]) / _SECONDS[found[2] or "s"]


def moment(given: datetime | timedelta | None, now: datetime) -> datetime | None:
    """The moment that a `Since` means."""
    return now - given if isinstance(given, timedelta) else given


def letter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which dead letters are meant; each one narrows."""
    for option in reversed(
        (
            click.option(
                "--review",
                "reviews",
                multiple=True,
                type=click.Choice([one.value for one in Review], case_sensitive=False),
                help="Only those whose review stands so; may be repeated.",
            ),
            click.option("--group", "-g", metavar="GROUP", help="Only this group of `rota failures list`."),
            click.option("--task", help="Only those of this task."),
            click.option("--queue", "-q", help="Only those of this queue."),
            click.option("--tenant", help="Only those of this tenant."),
            click.option("--error-class", help="Only those with this error class, such as timeout."),
            click.option("--subject", help="Only those about this subject."),
            click.option("--correlation", "correlation_id", help="Only those of this correlation."),
            click.option("--since", type=Since(), help="Died since then, or within so long: 2026-03-01, 2h."),
            click.option("--until", type=Since(), help="Died until then, or longer ago: 2026-03-01, 2h."),
        )
    ):
        command = option(command)
    return command


def letters_from(options: dict[str, Any], now: datetime, **more: Any) -> DeadFilter:
    """Which dead letters the options mean. Takes them out of `options`."""
    reviews = tuple(Review(one) for one in options.pop("reviews", ()))
    times: dict[str, Any] = {name: moment(options.pop(name, None), now) for name in ("since", "until")}
    names = [name for name in DeadFilter._fields if name in options]
    return DeadFilter(reviews=reviews, **times, **{name: options.pop(name) for name in names}, **more)
