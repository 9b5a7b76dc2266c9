"""The address of a job's trace: what OpenTelemetry left in its headers, put into an address that was set. Pure."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

PLACE = "{trace_id}"
PARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
"""A `traceparent` as the W3C writes it."""
NOBODY = "0" * 32


def checked_trace_url(template: str) -> str:
    """An address that a trace's id can be put into, or `ValueError`."""
    text = template.strip()
    try:
        parts = urlsplit(text)
        named = bool(parts.hostname)
    except ValueError:
        parts, named = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not named:
        raise ValueError("it is not an address of the web; write https://jaeger.example/trace/{trace_id}")
    if any(letter.isspace() or ord(letter) < 32 for letter in text):
        raise ValueError("it has a space in it; write https://jaeger.example/trace/{trace_id}")
    if PLACE not in text:
        raise ValueError(
            f"it does not say where the trace's id stands; put {PLACE} there, as in "
            "https://jaeger.example/trace/{trace_id}"
        )
    return text


def trace_id(headers_json: str | None) -> str | None:
    """The trace in which a job was enqueued; None: it was not traced, or what its headers say is none."""
    if headers_json is None or "traceparent" not in headers_json:
        return None
    headers = json.loads(headers_json)
    said = headers.get("traceparent") if isinstance(headers, dict) else None
    found = PARENT.fullmatch(said) if isinstance(said, str) else None
    return None if found is None or found[1] == NOBODY else found[1]


def trace_link(template: str | None, headers_json: str | None) -> str | None:
    """Where the trace of a job is to be seen; None: nobody said where, or it has none."""
    found = trace_id(headers_json)
    return None if template is None or found is None else template.replace(PLACE, found)
