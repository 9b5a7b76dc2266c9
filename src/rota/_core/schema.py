"""What a task's published JSON Schema says of its arguments, checked without the task's code. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from rota._core.redaction import redacted
from rota.errors import PayloadInvalid

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
        if wanted and not fits(value, wanted):
            # The value may be one that whoever edits the others may not see.
            got = json.dumps(redacted(value, name=name), ensure_ascii=False)[:60]
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
        return frozenset(kind(value) for value in part.get("enum", [part.get("const")]))
    given = part.get("type", ())
    return frozenset([given] if isinstance(given, str) else given)


def kind(value: object) -> str:
    """The JSON type of a value."""
    return next(name for python_type, name in _KINDS if isinstance(value, python_type))


def fits(value: object, wanted: frozenset[str]) -> bool:
    name = kind(value)
    return name in wanted or (name == "integer" and "number" in wanted)


def _takes(task: str, schema: Schema) -> str:
    required = set(schema.get("required", ()))
    names = [name if name in required else f"[{name}]" for name in schema.get("properties", {})]
    return f"It takes: {', '.join(names)}." if names else f"{task} takes none."
