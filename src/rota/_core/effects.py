"""Effect keys: the name under which outside systems know one piece of work, however often it is run."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid5

from rota._core.job import Job

HEADER = "rota.effect_key"
"""Where a job that continues another one keeps the key of the first."""


def effect_key(job: Job, part: str | None = None) -> str:
    """A text of 36 characters that is the same for every attempt of a job, and for its reprocessing.

    It is the job's id, or that of the dead job which this one continues. A
    `part` gives each of several effects its own key: a UUID made of both, so
    that it fits wherever a key may go, and tells nobody what the part is called.
    """
    root = _carried(job) or str(job.id)
    if part is None:
        return root
    if not part:
        raise ValueError("the part of an effect key is empty. Name the effect, such as 'charge'.")
    return str(uuid5(_namespace(root), part))


def continued_headers(job: Job) -> str:
    """The headers for a new job that continues `job` (a reprocessed dead one): its own, and its effect key."""
    headers: dict[str, Any] = {} if job.headers_json is None else json.loads(job.headers_json)
    return json.dumps(headers | {HEADER: effect_key(job)})


def _carried(job: Job) -> str | None:
    if job.headers_json is None or HEADER not in job.headers_json:
        return None
    found = json.loads(job.headers_json).get(HEADER)
    return found if isinstance(found, str) and found else None


def _namespace(root: str) -> UUID:
    """The id itself, or a UUID that stands for a key which came from elsewhere."""
    try:
        return UUID(root)
    except ValueError:
        return uuid5(UUID(int=0), root)
