"""What people may see of payloads, errors and logs: the same, without what `sensitive` finds in it."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from rota._core import sensitive
from rota._core.job import Job

HIDDEN = "***"

_WORDS = (
    r"[A-Za-z0-9_.-]{0,40}(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|authorization|credentials?)"
)
_ASSIGNED = rf"(?i)\b({_WORDS}\s*=\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&)}}\]]+)"
_QUOTED = rf"(?i)([\"']{_WORDS}[\"']\s*:\s*)(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
_PEM = (
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
)
_LOGIN = r"(://[^/@:?#\s]+:)[^/@?#\s]+@"
_OURS = "rota_[a-z2-7]{12}_[A-Za-z0-9]{48}"  # token.py has its form
_TOKENS = f"(?:{sensitive.JWT})|(?:{sensitive.TOKEN})|(?:{_OURS})"
_HINT = (
    r"(?i)password|passwd|passphrase|pwd|secret|token|key|authorization|credential|://|eyJ|bearer|basic|gh[pousr]_"
    r"|github_pat_|glpat-|xox[abprs]-|[sr]k_live_|AKIA|AIza|rota_|[2-6](?:[ -]?[0-9]){12}"
)
_like = cache(re.compile)  # at first use: most processes never show a payload


def redacted(value: Any, *, name: str = "") -> Any:
    """A JSON value or a text with every part hidden that should not have been in it; `name` is what it is called."""
    return _redacted(value, sensitive.kind_of_name(name) if name else None)


def _redacted(value: Any, under: str | None) -> Any:
    if isinstance(value, dict):
        return {
            name: _redacted(inner, sensitive.kind_of_name(str(name)) or under)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_redacted(inner, under) for inner in value]
    if isinstance(value, tuple):
        return tuple(_redacted(inner, under) for inner in value)
    kind = sensitive.kind_of_leaf(value, under)
    if kind is None:
        return redacted_text(value) if isinstance(value, str) else value
    if kind == sensitive.CONTENT:
        return f"{HIDDEN} ({len(value):,} characters)"
    if under is not None and under != sensitive.MAYBE:
        return HIDDEN
    return redacted_text(value)


def redacted_json(text: str) -> str:
    """Stored JSON with every part hidden that should not be in it; the very same text where there is none."""
    value = json.loads(text)
    hidden = redacted(value)
    return text if hidden == value else json.dumps(hidden, ensure_ascii=False, separators=(",", ":"))


def for_people(job: Job) -> Job:
    """A job as everybody sees it who looks after jobs: payload, result, error and reason without what is sensitive."""
    return job._replace(
        payload_json=redacted_json(job.payload_json),
        result_json=None if job.result_json is None else redacted_json(job.result_json),
        error_message=None if job.error_message is None else redacted_text(job.error_message),
        reason=None if job.reason is None else redacted_text(job.reason),
    )


def redacted_text(text: str) -> str:
    """A message, a log line or a stack without the secrets that it quotes. What is around them stays readable."""
    if not _like(_HINT).search(text):
        return text
    text = _like(_PEM).sub(HIDDEN, text)
    text = _like(_TOKENS).sub(HIDDEN, text)
    text = _like(_LOGIN).sub(rf"\1{HIDDEN}@", text)
    text = _like(sensitive.CARD).sub(lambda found: HIDDEN if sensitive.is_card(found[0]) else found[0], text)
    text = _like(_QUOTED).sub(rf"\1'{HIDDEN}'", text)
    return _like(_ASSIGNED).sub(rf"\1{HIDDEN}", text)
