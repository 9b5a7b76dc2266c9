"""How a command ends: exit codes that scripts can rely on, and errors in one readable block."""

from __future__ import annotations

from typing import NoReturn

import click

from rota import errors

DONE = 0
PROBLEMS = 1
"""It worked, and what it found is not well; or the job or the store said no."""
USAGE = 2
UNREACHABLE = 3
NOTHING = 4
"""Nothing matched."""
NO_APP = 5
"""Between `rota dev` and its worker only: what was named is no app, so there is nothing to wait for."""
INTERRUPTED = 130

_CODES: tuple[tuple[type[errors.RotaError], int], ...] = (
    (errors.StoreUnavailable, UNREACHABLE),
    (errors.EmbeddedUnavailable, UNREACHABLE),
    (errors.JobNotFound, NOTHING),
    (errors.GroupNotFound, NOTHING),
    (errors.OperationNotFound, NOTHING),
    (errors.ConfigError, USAGE),
    (errors.UnknownTask, USAGE),
    (errors.PayloadInvalid, USAGE),
    (errors.TaskError, USAGE),
    (errors.TaskNotParked, NOTHING),
    (errors.ScheduleNotFound, NOTHING),
    (errors.ScheduleChanged, PROBLEMS),
    (errors.ScheduleError, USAGE),
)


def code_of(error: errors.RotaError) -> int:
    """The exit code that stands for this error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), PROBLEMS)


class Wrong(click.ClickException):
    """The command line itself is wrong: a value that cannot be used, an app that is not there."""

    exit_code = USAGE


class NoApp(Wrong):
    """What was named is no app: no such file or module, or nothing in it that is one."""


class Refused(click.ClickException):
    """The command was understood, and cannot be done as things stand."""

    exit_code = PROBLEMS


class ReaderGone(Exception):
    """Whoever read our output has closed it."""


def leave(code: int) -> NoReturn:
    """End the command with this exit code, after everything that is open has been closed."""
    raise click.exceptions.Exit(code)
