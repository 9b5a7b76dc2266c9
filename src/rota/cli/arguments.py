"""Arguments as they are typed, `name=value`, turned into a JSON payload by the task's JSON Schema. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rota._core.schema import Schema, check, fits, kind, kinds
from rota.errors import PayloadInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Schema", "check", "kinds", "payload_from"]


def payload_from(pairs: Sequence[str], document: str | None, schema: Schema) -> dict[str, Any]:
    """The payload that a JSON document and `name=value` pairs make together; the pairs come on top.

    `name=value` is a text where the schema wants one, else JSON if it can be
    read so; `name:=value` is always JSON.
    """
    payload = {} if document is None else _document(document)
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.rstrip(":"):
            raise PayloadInvalid(
                f"{pair!r} is not an argument. Write name=value, or name:=JSON, or give --json FILE."
            )
        if name.endswith(":"):
            name = name[:-1]
            payload[name] = _json(text, f"the value of {name}")
        else:
            payload[name] = _typed(text, kinds(schema.get("properties", {}).get(name, {}), schema))
    return payload


def _typed(text: str, wanted: frozenset[str]) -> Any:
    if wanted == {"string"}:
        return text
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text
    return text if "string" in wanted and not fits(value, wanted) else value


def _document(text: str) -> dict[str, Any]:
    value = _json(text, "the payload")
    if not isinstance(value, dict):
        raise PayloadInvalid(
            f'the payload is {kind(value)}, and must be an object of arguments by name, such as {{"to": "a@b.c"}}.'
        )
    return value


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise PayloadInvalid(f"{what} is not JSON: {error}. Check quotes and commas.") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")
