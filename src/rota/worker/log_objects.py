"""Whole logs of jobs in an object store: S3, and whatever speaks like it (MinIO, Ceph, R2).

One object for each batch of lines, because objects cannot be appended to. Who asks, where, and how
a request is signed is boto3's business; a worker that writes no logs there loads none of it.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from rota._core.job_log import LogLine
from rota._core.redaction import redacted_text
from rota.errors import ConfigError

log = logging.getLogger("rota.worker")

PATIENCE = 5.0
"""Seconds that the store has to take a connection, and then to answer."""
TRIES = 2
"""The store may close a connection at any time: then once more, and no oftener, for the lines of all jobs wait."""
REST = 30.0
"""Seconds without a try after one that failed, so that a store that is away does not hold up the lines of all jobs."""
FULL = "… the log ends here: it is full\n".encode()
ATTEMPTS = 10_000
"""Attempts whose size is remembered."""


class Objects:
    """A prefix for each attempt, `9f/0198c1a2-….2/`, and below it an object for each batch, named by its time."""

    def __init__(self, bucket: str, prefix: str, *, size_limit: int) -> None:
        self._bucket, self._prefix, self._limit = bucket, prefix.strip("/"), size_limit
        self._sizes: OrderedDict[tuple[UUID, int], int] = OrderedDict()
        self._client: Any = None
        self._rests_until = 0.0

    def add(self, job_id: UUID, version: int, lines: Sequence[LogLine], left_out: int) -> str | None:
        place = f"{self._prefix}/{job_id.hex[-2:]}/{job_id}.{version}".lstrip("/")
        size = self._sizes.pop((job_id, version), 0)
        text = f"… {left_out} lines were left out: too many at once\n" if left_out else ""
        text += "".join(f"{line}\n" for line in lines)
        body = text.encode(errors="replace")
        if size + len(body) > self._limit:
            body, size = FULL if size <= self._limit else b"", max(size, self._limit)
        self._sizes[job_id, version] = size + len(body)
        if len(self._sizes) > ATTEMPTS:
            self._sizes.popitem(last=False)
        name = f"{place}/{lines[0].at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.log"
        written = not body or self._put(name, body)
        return f"s3://{self._bucket}/{place}/" if written else None

    def _put(self, name: str, body: bytes) -> bool:
        if time.monotonic() < self._rests_until:
            return False
        try:
            if self._client is None:
                self._client = _new_client()
            self._client.put_object(
                Bucket=self._bucket, Key=name, Body=body, ContentType="text/plain; charset=utf-8"
            )
        except Exception as error:  # of boto3, of its profiles, of a broken install: no job may fail by any
            self._failed(error)
            return False
        return True

    def _failed(self, error: Exception) -> None:
        self._rests_until = time.monotonic() + REST
        client, self._client = self._client, None  # one that found no credentials would never look again
        where = "" if client is None else f" at {client.meta.endpoint_url}"
        if client is not None:
            client.close()
        log.error(
            "the logs of jobs cannot be written to s3://%s%s: %s. Jobs run on, and their newest lines are kept in the "
            "store; it is tried again in %d s. Look at the credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "AWS_PROFILE, or the role of the machine), at AWS_REGION and AWS_ENDPOINT_URL_S3, and at the rights of the "
            "bucket (s3:PutObject).",
            self._bucket, redacted_text(where), redacted_text(" ".join(str(error).split()))[:300].rstrip("."), REST,
        )  # fmt: skip


def _new_client() -> Any:
    """A client of S3 as the environment, the profile or the machine describe it; whatever boto3 raises."""
    from boto3.session import Session  # takes a while and much memory: not before there is something to write
    from botocore.config import Config

    patience = Config(
        connect_timeout=PATIENCE,
        read_timeout=PATIENCE,
        retries={"mode": "standard", "total_max_attempts": TRIES},
        request_checksum_calculation="when_required",  # not every store but Amazon's knows checksums as trailers
    )
    # A session of its own: the one that boto3 shares belongs to the handlers, and is not safe between threads.
    return Session().client("s3", config=patience)


def objects(location: str, environment: Mapping[str, str], *, size_limit: int) -> Objects:
    """The place that `s3://bucket/prefix` names; ConfigError where something is missing for it.

    Credentials are not looked for: a role of the machine may give them later than the worker starts.
    """
    parts = urlsplit(location)
    if not parts.netloc:
        raise ConfigError(
            f"the setting log_location is {location!r}, which names no bucket. Write s3://bucket/prefix."
        )
    if find_spec("boto3") is None:
        raise ConfigError(
            f"the setting log_location is {location!r}, but boto3, which writes there, is not installed. Install it "
            'with `pip install "rota[s3]"`.'
        )
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        there = urlsplit(environment.get(name, ""))
        if "@" in there.netloc:
            raise ConfigError(
                f"{name} has a name or a password in it; those are AWS_ACCESS_KEY_ID and its like."
            )
        if environment.get(name) and (there.scheme not in ("http", "https") or not there.hostname):
            raise ConfigError(f"{name} is {environment[name]!r}; write it like https://minio.example:9000.")
    return Objects(parts.netloc, parts.path, size_limit=size_limit)
