"""PayloadValidator: payloads as DOC-20 writes them, checked or made outside of any enqueue."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID, uuid4

from rota._core.categories import Categories
from rota._core.payload import LIMIT_BYTES, WARN_BYTES, PayloadWarning, problem
from rota._core.payload_rules import missing_refs, required_faults
from rota._core.sensitive import findings
from rota.errors import PayloadInvalid, UnknownCategory

VERSION = "1.0"


class PayloadValidator:
    """Checks payloads that carry `tenant_id`, `correlation_id`, `idempotency_key` and references themselves."""

    @staticmethod
    def validate_payload(
        payload: Mapping[str, Any],
        category: str,
        additional_required: Iterable[str] = (),
        *,
        categories: Categories | None = None,
    ) -> tuple[bool, list[str]]:
        """Whether a payload keeps every rule, and what is wrong with it: `(is_valid, errors)`.

        `additional_required` names more references that must be there;
        `categories` are the app's, if it has some of its own. Above 10 KB there
        is a warning, above 256 KB an error.
        """
        if not isinstance(payload, Mapping):
            return False, [f"the payload must be an object of named values, not {type(payload).__name__}"]
        wrong = list(required_faults(payload).values())
        refs: list[tuple[str, ...]] = [(name,) for name in additional_required or ()]
        try:
            refs = [*(categories or Categories())[category].refs, *refs]
        except UnknownCategory as error:
            wrong.append(str(error))
        wrong += missing_refs(payload, dict.fromkeys(refs)).values()
        version = payload.get("payload_version", VERSION)
        if not isinstance(version, str) or not version:
            wrong.append(f'payload_version must be a text such as "1.0", not {version!r}')
        wrong += [
            f"{found}; keep it where it belongs and pass a reference to it" for found in findings(payload)
        ]
        wrong += _size(payload)
        return not wrong, wrong

    @staticmethod
    def create_payload(
        *,
        category: str,
        tenant_id: int,
        idempotency_key: str,
        correlation_id: UUID | str | None = None,
        payload_version: str = VERSION,
        additional_required: Iterable[str] = (),
        categories: Categories | None = None,
        **refs: Any,
    ) -> dict[str, Any]:
        """Make a payload that keeps every rule, or raise PayloadInvalid with all that is wrong.

        Without a `correlation_id` it begins a correlation of its own.
        """
        payload = {
            "tenant_id": tenant_id,
            "correlation_id": str(correlation_id or uuid4()),
            "idempotency_key": idempotency_key,
            "payload_version": payload_version,
            **refs,
        }
        valid, wrong = PayloadValidator.validate_payload(
            payload, category, additional_required, categories=categories
        )
        if not valid:
            raise PayloadInvalid(f"no valid payload of category {category!r}: {'; '.join(wrong)}.")
        return payload


def _size(payload: Mapping[str, Any]) -> list[str]:
    try:
        text = json.dumps(dict(payload), ensure_ascii=False, separators=(",", ":"), default=_as_text)
    except (TypeError, ValueError, RecursionError) as error:
        return [f"the payload has no JSON form ({error}); pass plain values or ids"]
    trouble = problem(text, limit=LIMIT_BYTES)
    if trouble is not None:
        return [f"the payload cannot be stored: {trouble}"]
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > WARN_BYTES:
        warnings.warn(
            f"the payload is {size:,} bytes of JSON; above {WARN_BYTES:,} queues get slow. "
            "Store the content elsewhere and pass a reference to it.",
            PayloadWarning,
            stacklevel=3,
        )
    return []


def _as_text(value: object) -> str:
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
