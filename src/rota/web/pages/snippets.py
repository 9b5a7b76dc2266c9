"""A job as something to copy: the same work asked for again from Python, a shell, or over HTTP."""

from __future__ import annotations

import json
import keyword
import shlex
from typing import Any, NamedTuple

from rota._core.job import DEFAULT_PRIORITY, Job

LONGEST = 4_096
PLAIN_TEXT = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Snippet(NamedTuple):
    """A text to copy, and what it is."""

    word: str
    text: str


def snippets(job: Job, payload: dict[str, Any], api: str) -> tuple[Snippet, ...]:
    """Enqueue it again, in three languages. `payload` is what may be shown; `api` is the address of jobs.

    None where that is too long to be copied by hand.
    """
    if len(job.payload_json) > LONGEST:
        return ()
    options: dict[str, Any] = {"queue": job.queue}
    if job.priority != DEFAULT_PRIORITY:
        options["priority"] = job.priority
    if job.tenant is not None:
        options["tenant"] = job.tenant
    return (
        Snippet("Python", _python(job.task, payload, options)),
        Snippet("Command line", _shell(job.task, payload, options)),
        Snippet("curl", _curl(job.task, payload, options, api)),
    )


def _python(task: str, payload: dict[str, Any], options: dict[str, Any]) -> str:
    plain = all(name.isidentifier() and not keyword.iskeyword(name) for name in payload)
    said = ", ".join(f"{name}={value!r}" for name, value in payload.items()) if plain else f"**{payload!r}"
    using = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"await app.tasks[{task!r}].using({using}).enqueue({said})"


def _shell(task: str, payload: dict[str, Any], options: dict[str, Any]) -> str:
    words = ["rota", "enqueue", task, *(_pair(name, value) for name, value in payload.items())]
    for name, value in options.items():
        words += [f"--{name}", str(value)]
    return shlex.join(words)


def _pair(name: str, value: Any) -> str:
    """`name=text`, where it cannot be read as anything else; else `name:=JSON`."""
    if isinstance(value, str) and value[:1] in PLAIN_TEXT and value not in ("true", "false", "null"):
        return f"{name}={value}"
    return f"{name}:={json.dumps(value, ensure_ascii=False)}"


def _curl(task: str, payload: dict[str, Any], options: dict[str, Any], api: str) -> str:
    body = json.dumps({"task": task, "args": payload, "options": options}, ensure_ascii=False)
    return (
        f'curl -X POST {shlex.quote(api)} -H "Authorization: Bearer $ROTA_TOKEN" '
        f"-H 'Content-Type: application/json' -d {shlex.quote(body)}"
    )
