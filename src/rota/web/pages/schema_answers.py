"""What was typed into the fields of a schema, as arguments: checked one by one, and kept where it does not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

from rota._core.redaction import HIDDEN, redacted
from rota._core.schema import fits
from rota.web.pages.forms import Form
from rota.web.pages.schema_form import EMPTY_TEXT, KIND_WORDS, NOTHING, Field

SHOWN = 60
DIGITS = 1_000


class Wrong(Exception):
    """Why what was typed cannot be an argument."""


class Answers(NamedTuple):
    """What a form says."""

    arguments: dict[str, Any]
    """All of them: those that the job has and those that were typed."""
    edits: dict[str, Any]
    """Only those that differ from what the job has. What is hidden and was typed anew always does: whoever may
    not see it must not learn from the answer whether he guessed it."""
    fields: tuple[Field, ...]
    """As they were typed, with what is wrong."""

    @property
    def wrong(self) -> list[Field]:
        """The fields that do not fit, also those within others."""
        return [field for one in self.fields for field in (one, *one.fields) if field.error]


def read(fields: Sequence[Field], form: Form, *, keeps: bool = True) -> Answers:
    """Read the fields back. Nothing is raised for what does not fit: the fields say it.

    `keeps`: what the job has cannot be taken away, because edits only replace.
    """
    typed = {
        name: value.replace("\r\n", "\n") for name, value in reversed(form.pairs)
    }  # the first one counts
    arguments: dict[str, Any] = {}
    edits: dict[str, Any] = {}
    answered = []
    for field in fields:
        done, value = _read(field, typed)
        answered.append(done)
        gone = _gone(field, value) if keeps and field.name in typed and not done.error else None
        if gone is not None:
            words = f"The job has the argument {gone!r}, and it cannot be taken away. Put it back, with any value."
            answered[-1] = done._replace(error=words)
            continue
        if value is NOTHING or done.error:
            continue
        if not field.path:
            taken = [name for name in value if any(name == other.label for other in fields)]
            if taken:
                words = f"{taken[0]!r} has a field of its own above: fill it in there."
                answered[-1] = done._replace(error=words)
                continue
            arguments |= value
            edits |= _edited(field, done, value)
        else:
            arguments[field.path[-1]] = value
            if _retyped(field, done) or not same(value, field.now):
                edits[field.path[-1]] = value
    return Answers(arguments, edits, tuple(answered))


def _gone(field: Field, value: Any) -> str | None:
    """The first of the further arguments that the job has and that does not stand in the field any more."""
    if field.path or not field.now:
        return None
    left = {} if value is NOTHING else value
    return next((name for name in field.now if name not in left), None)


def _edited(field: Field, done: Field, value: dict[str, Any]) -> dict[str, Any]:
    """Those of the further arguments that were changed, or typed anew over what is hidden."""
    old, new = field.now or {}, value
    if field.hidden and done.typed != field.typed:
        old, new = json.loads(field.typed), json.loads(done.typed)
    return {name: value[name] for name in value if name not in old or not same(new[name], old[name])}


def _retyped(field: Field, done: Field) -> bool:
    """Whether something was typed over what is hidden in it."""
    pairs = zip((field, *field.fields), (done, *done.fields), strict=True)
    return any(before.hidden and after.typed != before.typed for before, after in pairs)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 is not true."""
    if one is NOTHING or other is NOTHING:
        return one is other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def marked(answers: Answers, message: str) -> tuple[Field, ...]:
    """The fields with a message of the task itself at the argument that it names; unchanged where it names none."""
    found = [field for field in answers.fields if field.path and f"argument {field.path[0]!r}" in message]
    found += [
        field
        for field in answers.fields
        if field.path and re.search(rf": {re.escape(field.label)} is ", message)
    ]
    return tuple(
        field._replace(error=message) if found and field is found[0] else field for field in answers.fields
    )


def _read(field: Field, typed: dict[str, str]) -> tuple[Field, Any]:
    """The field as it was typed, and its value; NOTHING where none was given."""
    if field.kind == "group":
        return _group(field, typed)
    text = typed.get(field.name, "")
    done = field._replace(typed=text)
    try:
        return done, _value(field, text)
    except Wrong as error:
        return done._replace(error=str(error)), NOTHING


def _group(field: Field, typed: dict[str, str]) -> tuple[Field, Any]:
    inner = [_read(member, typed) for member in field.fields]
    untouched = all(typed.get(member.name, "").strip() == "" for member in field.fields)
    if untouched and not isinstance(field.now, dict) and (field.nullable or not field.required):
        members = tuple(member._replace(typed="") for member in field.fields)
        nothing = NOTHING if field.now is NOTHING and not field.required else None
        return field._replace(fields=members), nothing
    value = dict(field.now) if isinstance(field.now, dict) else {}
    value |= {member.path[-1]: part for member, part in inner if part is not NOTHING}
    return field._replace(fields=tuple(member for member, _ in inner)), value


def _value(field: Field, text: str) -> Any:
    if field.now is not NOTHING and text == field.typed:
        return field.now  # left as it was shown: exact, and also where it is hidden
    if not (text if field.kind in ("text", "long") else text.strip()):
        return _empty(field)
    if field.hidden:
        text_without = _restored(field, text)
        if text_without is not NOTHING:
            return text_without
    return _checked(field, text)


def _empty(field: Field) -> Any:
    """What it means that nothing stands in the field."""
    if field.now is not NOTHING and field.path:
        if field.default is not NOTHING:
            return field.default
        if field.nullable:
            return None
        raise Wrong("The job has this argument, and it cannot be taken away. Type a value.")
    if field.required:
        if field.nullable and field.kind != "choice":
            return None
        hint = f" For an empty text, type {EMPTY_TEXT}." if field.kind in ("text", "long") else ""
        raise Wrong(f"This argument is needed: {field.type}.{hint}")
    return NOTHING


def _restored(field: Field, text: str) -> Any:
    """What was typed over a value of which parts are hidden, with these parts put back; NOTHING: none is in it."""
    if HIDDEN not in text:
        return NOTHING
    if field.kind == "json":
        shown = redacted(field.now, name=field.label)
        if field.typed:
            shown = json.loads(field.typed)
        value = _merged(_checked(field, text), shown, field.now)
        if HIDDEN not in json.dumps(value):
            return value
    raise Wrong(
        f"{HIDDEN} stands for something hidden. Leave the whole as it was shown, or type all of it anew."
    )


def _merged(typed: Any, shown: Any, now: Any) -> Any:
    if same(typed, shown):
        return now
    if isinstance(typed, dict) and isinstance(shown, dict) and isinstance(now, dict):
        return {
            name: _merged(inner, shown[name], now[name]) if name in shown and name in now else inner
            for name, inner in typed.items()
        }
    if (
        isinstance(typed, list)
        and isinstance(shown, list)
        and isinstance(now, list)
        and len(typed) == len(now)
    ):
        return [_merged(*three) for three in zip(typed, shown, now, strict=True)]
    return typed


def _checked(field: Field, text: str) -> Any:
    value = _parsed(field, text)
    if field.allowed and not fits(value, field.allowed):
        words = " or ".join(sorted(KIND_WORDS.get(kind, kind) for kind in field.allowed))
        raise Wrong(f"{_quoted(field, text)} is not {words}.")
    if value is not None:
        _within(field, value, text)
    return value


def _parsed(field: Field, text: str) -> Any:
    stripped = text.strip()
    match field.kind:
        case "text" | "long":
            return "" if text == EMPTY_TEXT else text
        case "integer":
            if not re.fullmatch(rf"[+-]?[0-9]{{1,{DIGITS}}}", stripped):
                raise Wrong(f"{_quoted(field, text)} is not a whole number. Type one such as 42.")
            return int(stripped)
        case "number":
            if not re.fullmatch(
                rf"[+-]?[0-9]{{0,{DIGITS}}}\.?[0-9]{{0,{DIGITS}}}([eE][+-]?[0-9]{{1,3}})?", stripped
            ):
                raise Wrong(f"{_quoted(field, text)} is not a number. Type one such as 2.5.")
            return _number(field, stripped)
        case "choice":
            if stripped not in {choice.value for choice in field.choices}:
                raise Wrong(f"{_quoted(field, text)} cannot be chosen. Choose {field.type}.")
            return json.loads(stripped)
        case _:
            return _json(field, stripped)


def _number(field: Field, text: str) -> int | float:
    try:
        value = int(text) if re.fullmatch("[+-]?[0-9]+", text) else float(text)
    except ValueError as error:
        raise Wrong(f"{_quoted(field, text)} is not a number. Type one such as 2.5.") from error
    if value in (float("inf"), float("-inf")):
        raise Wrong(f"{_quoted(field, text)} is larger than any number that JSON has.")
    return value


def _json(field: Field, text: str) -> Any:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        where = (
            f"line {error.lineno}, column {error.colno}: {error.msg}"
            if isinstance(error, json.JSONDecodeError)
            else error
        )
        example = {"array": '["a", "b"]', "object": '{"name": 1}'}.get(
            str(field.part.get("type")), '"text" or 3'
        )
        raise Wrong(
            f"This is not JSON ({where}). Type it such as {example}; texts stand in double quotes."
        ) from error


def _within(field: Field, value: Any, text: str) -> None:
    """Refuse what is outside of the bounds that the schema tells; the task's own code checks the rest."""
    part, said = field.part, _quoted(field, text)
    if isinstance(value, int | float) and not isinstance(value, bool):
        for word, low in (
            ("minimum", True),
            ("exclusiveMinimum", True),
            ("maximum", False),
            ("exclusiveMaximum", False),
        ):
            edge = part.get(word)
            if not isinstance(edge, int | float) or isinstance(edge, bool):
                continue
            beyond = value < edge if low else value > edge
            if beyond or (value == edge and word.startswith("exclusive")):
                strictly = word.startswith("exclusive")
                words = (
                    ("more than" if low else "less than") if strictly else ("at least" if low else "at most")
                )
                raise Wrong(f"{said} is out of bounds: it must be {words} {edge}.")
    if isinstance(value, str) and field.kind in ("text", "long"):
        least, most = part.get("minLength"), part.get("maxLength")
        if isinstance(least, int) and len(value) < least:
            raise Wrong(f"{said} is too short: at least {least} characters are needed.")
        if isinstance(most, int) and len(value) > most:
            raise Wrong(f"{said} has {len(value):,} characters: at most {most:,} are allowed.")
        _formed(str(part.get("format")), value, said)


def _formed(kind: str, value: str, said: str) -> None:
    readers: dict[str, Any] = {"date-time": datetime.fromisoformat, "date": date.fromisoformat, "uuid": UUID}
    examples = {
        "date-time": "a date and time, such as 2026-11-16T14:30:00Z",
        "date": "a date, such as 2026-11-16",
        "uuid": "a UUID, such as 0198c1a2-6c3e-7d60-9c3f-5a1e2b7f4d10",
    }
    if kind not in readers:
        return
    try:
        readers[kind](value)
    except ValueError as error:
        raise Wrong(f"{said} is not {examples[kind]}.") from error


def _quoted(field: Field, text: str) -> str:
    """What was typed, to be named in a message: short, and without what is sensitive."""
    shown = str(redacted(text, name=field.label))
    return json.dumps(shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 1]}…", ensure_ascii=False)
