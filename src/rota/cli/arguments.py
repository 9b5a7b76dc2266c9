"""Arguments as they are typed, `name=value`, turned into a JSON payload by the task's JSON Schema. Pure."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from rota.errors import PayloadInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Schema = dict[str, Any]

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
    (type(None), "null"),
)


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


def check(task: str, payload: Mapping[str, Any], schema: Schema) -> None:
    """Refuse what plainly does not fit: a missing or unknown argument, or one of another kind.

    The worker checks all of it against the code; this finds the mistyped
    before they are stored.
    """
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in payload:
            raise PayloadInvalid(f"{task} needs the argument {name!r}. {_takes(task, schema)}")
    for name, value in payload.items():
        if name not in properties:
            if schema.get("additionalProperties", True) is False:
                close = get_close_matches(name, properties, n=1)
                hint = f" Did you mean {close[0]!r}?" if close else ""
                raise PayloadInvalid(f"{task} has no argument {name!r}.{hint} {_takes(task, schema)}")
            continue
        wanted = kinds(properties[name], schema)
        if wanted and not _fits(value, wanted):
            got = json.dumps(value, ensure_ascii=False)[:60]
            raise PayloadInvalid(f"{task}: {name} is {got}, and must be {' or '.join(sorted(wanted))}.")


def kinds(part: Schema, schema: Schema) -> frozenset[str]:
    """The JSON types that a part of the schema allows; none when it says nothing of that."""
    if "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        return kinds(schema.get("$defs", {}).get(name, {}), schema)
    for choice in ("anyOf", "oneOf"):
        if choice in part:
            inner = [kinds(option, schema) for option in part[choice]]
            return frozenset().union(*inner) if all(inner) else frozenset()
    if "const" in part or "enum" in part:
        return frozenset(_kind(value) for value in part.get("enum", [part.get("const")]))
    given = part.get("type", ())
    return frozenset([given] if isinstance(given, str) else given)


def _typed(text: str, wanted: frozenset[str]) -> Any:
    if wanted == {"string"}:
        return text
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text
    return text if "string" in wanted and not _fits(value, wanted) else value


def _document(text: str) -> dict[str, Any]:
    value = _json(text, "the payload")
    if not isinstance(value, dict):
        raise PayloadInvalid(
            f'the payload is {_kind(value)}, and must be an object of arguments by name, such as {{"to": "a@b.c"}}.'
        )
    return value


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise PayloadInvalid(f"{what} is not JSON: {error}. Check quotes and commas.") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _kind(value: object) -> str:
    return next(name for kind, name in _KINDS if isinstance(value, kind))


def _fits(value: object, wanted: frozenset[str]) -> bool:
    kind = _kind(value)
    return kind in wanted or (kind == "integer" and "number" in wanted)


def _takes(task: str, schema: Schema) -> str:
    required = set(schema.get("required", ()))
    names = [name if name in required else f"[{name}]" for name in schema.get("properties", {})]
    return f"It takes: {', '.join(names)}." if names else f"{task} takes none."
