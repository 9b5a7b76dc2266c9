"""What worker and child say to each other: frames of JSON over a socket. Never pickle: a child is not to be trusted.

A frame is a header (a JSON object) and a body (bytes; the result of a job).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from rota._core.job import Job, State

Header: TypeAlias = "dict[str, Any]"

HEADER_LIMIT = 1_048_576
"""Bytes that a header may have: the largest carries a job with its payload, or an error with its stack."""

_SIZES = struct.Struct(">II")
_IDS = frozenset({"id", "session_id", "parent_id", "superseded_by"})
_TIMES = frozenset(
    {"run_at", "created_at", "updated_at", "claimed_at", "finished_at", "deadline", "cancel_requested_at"}
)


class Garbled(Exception):
    """What came is no frame, or is larger than allowed."""


def frame(header: Header, body: bytes = b"") -> bytes:
    """A frame as bytes."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return _SIZES.pack(len(text), len(body)) + text + body


class Frames:
    """Turns bytes as they come into frames, and refuses what is larger than allowed before it is all here."""

    def __init__(self, *, body_limit: int, header_limit: int = HEADER_LIMIT) -> None:
        self._header_limit, self._body_limit = header_limit, body_limit
        self._came = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[Header, bytes]]:
        """The frames that are whole now."""
        self._came += data
        while len(self._came) >= _SIZES.size:
            head, body = _SIZES.unpack_from(self._came)
            if head > self._header_limit or body > self._body_limit:
                raise Garbled(f"a frame of {head + body:,} bytes, {self._body_limit:,} are allowed")
            end = _SIZES.size + head + body
            if len(self._came) < end:
                return
            text = bytes(self._came[_SIZES.size : _SIZES.size + head])
            rest = bytes(self._came[_SIZES.size + head : end])
            del self._came[:end]
            try:
                header = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise Garbled("a frame whose header is no JSON") from error
            if not isinstance(header, dict):
                raise Garbled("a frame whose header is no JSON object")
            yield header, rest


def from_job(job: Job) -> Header:
    """A job as plain values."""
    return {name: _plain(value) for name, value in job._asdict().items() if value is not None}


def to_job(plain: Header) -> Job:
    """The job that `from_job` was given."""
    return Job(**{name: _restored(name, value) for name, value in plain.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _restored(name: str, value: Any) -> Any:
    if name in _IDS:
        return UUID(value)
    if name in _TIMES:
        return datetime.fromisoformat(value)
    if name == "state":
        return State(value)
    return tuple(value) if name == "tags" else value
