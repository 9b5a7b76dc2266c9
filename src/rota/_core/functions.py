"""What is known of a function before it is a task."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rota.errors import TaskError


def is_async(fn: object) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004


def place_of(fn: Callable[..., Any]) -> str:
    """Where it is defined: file and line."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(fn)


def checked_parameters(task: str, fn: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Its parameters by name; TaskError where a job could not keep them."""
    parameters = dict(inspect.signature(fn).parameters)
    for parameter in parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise TaskError(
                f"task {task!r} takes *{parameter.name}, and jobs keep arguments by name. "
                f"Use one parameter that is a list: {parameter.name}: list[...]."
            )
    return parameters
