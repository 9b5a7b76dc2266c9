"""The fields of a form from the JSON Schema of a task's arguments: one for each argument, blank or with what a job has.

    fields = blank(schema)                     # or prefilled(schema, job.payload)
    answers = read(fields, form)               # in schema_answers: arguments, edits, and fields with what was typed

A template draws them with `schema_fields(fields)` of `schema_form.html`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rota._core.redaction import redacted, redacted_text
from rota._core.schema import Schema, kinds

PREFIX = "arg"
NOTHING: Final = type("Nothing", (), {"__repr__": lambda _: "nothing", "__bool__": lambda _: False})()
"""Where no value is, which is not null."""
EMPTY_TEXT = '""'
"""What is typed for a text without any letter: an empty field says nothing."""
HOPS = 20
CHOICES = 100
WORDS = 80
FORMATS = {
    "date-time": ("date and time", "2026-11-16T14:30:00Z"),
    "date": ("date", "2026-11-16"),
    "time": ("time of day", "14:30:00"),
    "duration": ("duration", "PT15M"),
    "uuid": ("UUID", "0198c1a2-6c3e-7d60-9c3f-5a1e2b7f4d10"),
    "email": ("mail address", "ann@example.org"),
    "uri": ("URL", "https://example.org/"),
    "binary": ("Base64", ""),
    "base64": ("Base64", ""),
}
KIND_WORDS = {
    "boolean": "yes or no",
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "array": "list",
    "object": "object",
    "null": "nothing",
}


class Choice(NamedTuple):
    """One of the values that an argument may have."""

    value: str
    """As JSON."""
    words: str


class Field(NamedTuple):
    """One argument, or one part of an argument that is an object."""

    id: str
    path: tuple[str, ...]
    kind: str
    """text, long (a text of many lines), integer, number, choice, json, group."""
    part: Schema
    """What the schema says of it, without references."""
    allowed: frozenset[str]
    """The JSON types that it may have; none: nothing is said."""
    required: bool
    nullable: bool
    now: Any = NOTHING
    """What the job has."""
    hidden: bool = False
    """True: what is shown is not what the job has, because that is sensitive."""
    typed: str = ""
    error: str = ""
    choices: tuple[Choice, ...] = ()
    fields: tuple[Field, ...] = ()

    @property
    def name(self) -> str:
        """How the form calls it: `arg.to`, `arg.address.city`."""
        return ".".join((PREFIX, *(part.replace("%", "%25").replace(".", "%2E") for part in self.path)))

    @property
    def label(self) -> str:
        return self.path[-1] if self.path else "more arguments"

    @property
    def default(self) -> Any:
        """The value that it has when nothing is said; `NOTHING` where that is not published."""
        return self.part.get("default", NOTHING)

    @property
    def help(self) -> str:
        said = self.part.get("description")
        return redacted_text(said) if isinstance(said, str) else ""

    @property
    def type(self) -> str:
        """What is typed here, in words: `whole number`, `text or nothing`."""
        if self.kind == "choice" and self.part.get("type") != "boolean":
            words = f"one of {', '.join(choice.words for choice in self.choices if choice.value != 'null')}"
        elif self.part.get("format") in FORMATS:
            words = FORMATS[self.part["format"]][0]
        else:
            named = sorted(KIND_WORDS[kind] for kind in self.allowed - {"null"} if kind in KIND_WORDS)
            words = " or ".join(named) or "any JSON"
            items = self.part.get("items")
            if words == "list" and isinstance(items, dict) and items.get("type") in KIND_WORDS:
                words = f"list of {KIND_WORDS[items['type']]}s"
        words = words if len(words) <= WORDS else f"{words[: WORDS - 1]}…"
        return f"{words} or nothing" if self.nullable else words

    @property
    def default_words(self) -> str:
        """`default 3`, `optional`, or nothing at all where it is required."""
        if self.required:
            return ""
        if self.default is NOTHING or self.default is None:
            return "optional"
        shown = json.dumps(redacted(self.default, name=self.label), ensure_ascii=False)
        return f"default {shown if len(shown) <= WORDS else shown[: WORDS - 1] + '…'}"

    @property
    def placeholder(self) -> str:
        if self.kind in ("integer", "number", "text", "json") and isinstance(self.default, int | float | str):
            return "" if self.default == "" else str(redacted(self.default, name=self.label))[:WORDS]
        return FORMATS.get(str(self.part.get("format")), ("", ""))[1]

    @property
    def inputmode(self) -> str:
        return {"integer": "numeric", "number": "decimal"}.get(self.kind, "text")

    @property
    def rows(self) -> int:
        """How tall its box is."""
        return min(16, max(3, self.typed.count("\n") + 1))


def blank(schema: Schema) -> tuple[Field, ...]:
    """The fields for a new job: nothing is filled in, defaults stand beside them."""
    return _fields(schema, NOTHING, NOTHING)


def prefilled(schema: Schema, payload: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields with what a job has. What is sensitive is hidden; left as it is shown, it stays."""
    return _fields(schema, dict(payload), redacted(dict(payload)))


def _fields(schema: Schema, now: Any, seen: Any) -> tuple[Field, ...]:
    properties = _properties(schema)
    required = _required(schema)
    # A store may keep no order of names. That of the required ones is in their list.
    order = [*(name for name in required if name in properties), *properties]
    found = [
        _field(
            f"f{at}",
            (name,),
            part,
            schema,
            required=name in required,
            now=_of(now, name),
            seen=_of(seen, name),
        )
        for at, (name, part) in enumerate((name, properties[name]) for name in dict.fromkeys(order))
    ]
    if schema.get("additionalProperties", not properties) is not False:
        known = isinstance(now, dict)
        rest = {name: value for name, value in now.items() if name not in properties} if known else NOTHING
        shown = {name: seen[name] for name in rest} if known else NOTHING
        typed = _json(shown) if shown else ""
        part = {"type": "object", "description": "Further arguments by name, as a JSON object."}
        found.append(
            Field(
                "more",
                (),
                "json",
                part,
                frozenset({"object"}),
                required=False,
                nullable=False,
                now=rest,
                hidden=rest != shown,
                typed=typed,
            )
        )
    return tuple(found)


def _field(
    id_: str, path: tuple[str, ...], part: Schema, schema: Schema, *, required: bool, now: Any, seen: Any
) -> Field:
    allowed = kinds(part, schema)
    plain, nullable = _resolved(part, schema)
    kind = _kind(plain, nested=len(path) > 1)
    blank_ = Field(
        id_, path, kind, plain, allowed, required, nullable, choices=_choices(kind, plain, nullable)
    )
    if kind == "group":
        inner = _members(blank_, schema, now, seen)
        if inner is None:
            blank_ = blank_._replace(kind="json")
        else:
            return blank_._replace(now=now, fields=inner)
    elif nullable and kind != "choice" and blank_.default not in (NOTHING, None):
        blank_ = blank_._replace(kind="json")  # an empty field means the default: null must be said
    if now is NOTHING:
        return blank_
    return _shown(blank_, now, seen)


def _members(field: Field, schema: Schema, now: Any, seen: Any) -> tuple[Field, ...] | None:
    """The parts of an object; None: what the job has does not fit into fields."""
    properties, required = _properties(field.part), _required(field.part)
    if now is None and not field.nullable:
        return None
    if isinstance(now, dict) and not now.keys() <= properties.keys():
        return None
    if now is not NOTHING and now is not None and not (isinstance(now, dict) and isinstance(seen, dict)):
        return None
    return tuple(
        _field(
            f"{field.id}-{at}",
            (*field.path, name),
            part,
            schema,
            required=name in required,
            now=_of(now, name),
            seen=_of(seen, name),
        )
        for at, (name, part) in enumerate(properties.items())
    )


def _shown(field: Field, now: Any, seen: Any) -> Field:
    """The field with what the job has; as JSON where nothing else would keep it exactly."""
    hidden = json.dumps(now) != json.dumps(seen)
    kind, typed = field.kind, _typed(field, seen)
    if typed is None:
        kind, typed = "json", _json(seen)
    elif kind == "text" and ("\n" in typed or len(typed) > WORDS):
        kind = "long"
    return field._replace(kind=kind, now=now, hidden=hidden, typed=typed)


def _typed(field: Field, value: Any) -> str | None:
    """What stands in the field for this value; None: nothing that would be read back as the same."""
    if value is None and field.kind not in ("choice", "json"):
        return "" if field.nullable else None
    match field.kind:
        case "text" if isinstance(value, str):
            if value == EMPTY_TEXT or any(ord(letter) < 32 and letter not in "\n\t" for letter in value):
                return None
            return value or EMPTY_TEXT
        case "integer" if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        case "number" if isinstance(value, int | float) and not isinstance(value, bool):
            return json.dumps(value)
        case "choice":
            text = json.dumps(value, ensure_ascii=False)
            return text if any(choice.value == text for choice in field.choices) else None
        case _:
            return None


def _kind(part: Schema, *, nested: bool) -> str:
    values = _values(part)
    if values is not None:
        return "choice" if 0 < len(values) <= CHOICES else "json"
    match part.get("type"):
        case "boolean":
            return "choice"
        case "string":
            return "text"
        case "integer" | "number" as kind:
            return str(kind)
        case "object" if not nested and _properties(part) and not part.get("additionalProperties"):
            return "group"
        case _:
            return "json"


def _choices(kind: str, part: Schema, nullable: bool) -> tuple[Choice, ...]:
    if kind != "choice":
        return ()
    values = _values(part)
    if values is None:
        found = [Choice("true", "yes"), Choice("false", "no")]
    else:
        found = [Choice(json.dumps(value, ensure_ascii=False), _word(value)) for value in values]
    if nullable and not any(choice.value == "null" for choice in found):
        found.append(Choice("null", "nothing"))
    return tuple(found)


def _word(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    return {"null": "nothing", "true": "yes", "false": "no"}.get(json.dumps(value), json.dumps(value))


def _values(part: Schema) -> list[Any] | None:
    """The values that are allowed, where they are counted up."""
    values = [part["const"]] if "const" in part else part.get("enum")
    if not isinstance(values, list) or any(isinstance(value, dict | list) for value in values):
        return None
    return values


def _resolved(part: Schema, schema: Schema) -> tuple[Schema, bool]:
    """A part of the schema without references and without the choice of null, and whether null is allowed."""
    nullable = False
    for _ in range(HOPS):
        beside = {
            name: value for name, value in part.items() if name not in ("$ref", "anyOf", "oneOf", "allOf")
        }
        options = next(
            (part[word] for word in ("anyOf", "oneOf", "allOf") if isinstance(part.get(word), list)), None
        )
        if "$ref" in part:
            definitions = schema.get("$defs")
            name = str(part["$ref"]).rpartition("/")[2]
            target = definitions.get(name) if isinstance(definitions, dict) else None
            part = {**(target if isinstance(target, dict) else {}), **beside}
        elif options is not None and all(isinstance(option, dict) for option in options):
            real = [option for option in options if option.get("type") != "null"]
            nullable = nullable or len(real) < len(options)
            if {option.get("type") for option in real} == {"number", "string"}:
                return {**beside, "type": "string"}, nullable  # a decimal: as a text it stays exact
            if len(real) != 1:
                return beside, nullable
            part = {**real[0], **beside}
        else:
            break
    given = part.get("type")
    if isinstance(given, list):
        real_types = [kind for kind in given if kind != "null"]
        nullable = nullable or len(real_types) < len(given)
        part = {**part, "type": real_types[0] if len(real_types) == 1 else None}
    return part, nullable


def _properties(part: Schema) -> dict[str, Schema]:
    found = part.get("properties")
    if not isinstance(found, dict):
        return {}
    return {name: inner if isinstance(inner, dict) else {} for name, inner in found.items()}


def _required(part: Schema) -> tuple[str, ...]:
    found = part.get("required")
    return tuple(name for name in found if isinstance(name, str)) if isinstance(found, list) else ()


def _of(value: Any, name: str) -> Any:
    return value.get(name, NOTHING) if isinstance(value, dict) else NOTHING


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
