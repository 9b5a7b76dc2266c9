"""The filter language of command line, HTTP and pages: `state:dead queue:mail args.user.id:7 created>1h`.

Words are joined by "and". A word is a field, a sign (`:`, `<`, `>`, `<=`, `>=`) and a
value; a value with spaces stands in double quotes. docs/filters.md is for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple
from uuid import UUID

from rota._core.durations import seconds
from rota._core.filter_words import OTHER_STATES, OTHER_WORDS
from rota._core.ids import parse_id
from rota._core.job import State
from rota._core.job_filter import ArgumentIs, JobFilter
from rota.errors import RotaError

TEXTS = {
    "queue": "queue",
    "task": "task",
    "tenant": "tenant",
    "tag": "tag",
    "subject": "subject",
    "key": "key",
    "external": "external_id",
    "correlation": "correlation_id",
    "error": "error",
    "category": "category",
}
"""Fields whose value is taken as it is, and what the filter calls them."""
FIELDS = (
    "state",
    *TEXTS,
    "id",
    "parent",
    "worker",
    "priority",
    "attempt",
    "args.",
    "created",
    "finished",
    "order",
)
ORDERS = {"newest": {}, "oldest": {"oldest_first": True}, "priority": {"by_priority": True}}
PRIORITIES = range(32_768)
NUMBERS = {"priority": "a priority", "attempt": "a number of attempts"}
DAY = timedelta(days=1)
LAST = datetime.max.replace(tzinfo=UTC)

PIECE = re.compile(r'\s+|(?P<word>(?:[^\s"]|"(?:[^"\\]|\\.)*")+)|(?P<open>")', re.DOTALL)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
SHAPE = re.compile(r"([A-Za-z_]+(?:\.[^:<>]+)?\.?)(:?(?:<=|>=|<|>)|:)(.*)", re.DOTALL)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class FilterError(RotaError, ValueError):
    """A word of a filter that cannot be understood. `word` is as it was written."""

    def __init__(self, word: str, why: str) -> None:
        self.word = word
        super().__init__(f"the filter word {word!r} is not understood: {why}")


class Word(NamedTuple):
    """One word, taken apart."""

    text: str
    field: str
    path: tuple[str, ...]
    """Of `args.`: the names on the way to the argument."""
    sign: str
    value: str


def parse(given: str | Sequence[str], *, now: datetime, **more: Any) -> JobFilter:
    """Which jobs a filter means. A text is split at spaces; a sequence (a shell's words) is split already.

    `now` is the store's clock: `created>1h` is counted back from it. `more` are
    fields that the caller decides; a word that says otherwise is an error.
    """
    fields: dict[str, Any] = {}
    said: dict[str, str] = {}
    for text in _texts(given):
        word = _apart(text)
        for name, value in READERS[word.field](word, now).items():
            if name == "args":
                fields[name] = (*fields.get(name, ()), *value)
                continue
            if name in said:
                raise FilterError(text, _twice(word.field, said[name]))
            fields[name], said[name] = value, text
    for name, value in more.items():
        if name in said and fields[name] != value:
            raise FilterError(
                said[name], "the same is asked for in another way, with another value; say it once."
            )
        fields[name] = value
    return JobFilter(**fields)


def split(text: str) -> list[str]:
    """A text as its words, quotes and all."""
    words: list[str] = []
    for piece in PIECE.finditer(text):
        if piece["open"]:
            raise FilterError(
                text, 'a double quote is not closed. Write a value with spaces as subject:"order 7".'
            )
        if piece["word"]:
            words.append(piece["word"])
    return words


def _texts(given: str | Sequence[str]) -> list[str]:
    if isinstance(given, str):
        return split(given)
    words: list[str] = []
    for text in given:
        # A shell has taken the quotes of subject:"order 7" away; and 'state:dead queue:mail' are two words.
        pieces = split(text) if text.count('"') % 2 == 0 else [text]
        apart = all((shape := SHAPE.match(piece)) and _known(shape[1]) for piece in pieces)
        words += pieces if apart else [text]
    return words


def _apart(text: str) -> Word:
    for character in text:
        if character == "\0" or "\ud800" <= character <= "\udfff":
            raise FilterError(text, "it holds a character that no job can hold.")
    shape = SHAPE.fullmatch(text)
    if shape is None:
        return _bare(text)
    name, sign, value = shape[1], shape[2], _unquoted(shape[3])
    field = _known(name)
    if field is None:
        raise FilterError(
            text, f"there is no field {name.partition('.')[0]!r}. {_instead(name, sign + value)}"
        )
    if not value.strip():
        raise FilterError(text, f"it has no value. Write for example {EXAMPLES[field]}.")
    if sign != ":" and field not in RANGED:
        raise FilterError(
            text, f"{field} has no order: write {field}:{value}. Ranges are for {', '.join(RANGED)}."
        )
    path = tuple(_unquoted(one) for one in name.split(".")[1:]) if field == "args." else ()
    if field == "args." and not all(path):
        raise FilterError(text, f"the name of an argument is missing. Write for example {EXAMPLES[field]}.")
    return Word(text, field, path, sign.lstrip(":") or ":", value)


def _bare(text: str) -> Word:
    """A word without a field: an id, or a mistake."""
    try:
        parse_id(text)
    except ValueError:
        name = _unquoted(text)
        why = f"it has no field. Write task:{name}, queue:{name} or another of {_list(FIELDS)}"
        raise FilterError(text, why.replace("args.,", "args.NAME,") + ".") from None
    return Word(text, "id", (), ":", text)


def _known(name: str) -> str | None:
    if name.startswith("args."):
        return "args."
    return name if name in READERS and name != "args." else None


def _instead(name: str, rest: str) -> str:
    first, _, path = name.partition(".")
    plain = first.lower()
    meant = OTHER_WORDS.get(plain) or next(iter(get_close_matches(plain, FIELDS, n=1)), None)
    if meant is None:
        return f"There are {_list(FIELDS).replace('args.,', 'args.NAME,')}."
    return f"Did you mean {meant}{path or 'NAME' if meant == 'args.' else ''}{rest}?"


def quoted(value: str) -> str:
    """A value as the filter language writes it."""
    if value and value[0] not in "<>" and not any(letter.isspace() or letter in '"\\' for letter in value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unquoted(text: str) -> str:
    return QUOTED.sub(lambda found: re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL), text)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}"


def _twice(field: str, before: str) -> str:
    if field == "state":
        return f"{before!r} is there too, and a job has one state. Several: state:dead,pending."
    return f"{before!r} is there too, and words are joined by 'and'. Leave one of them out."


# What each field makes of its value


def _states(word: Word, _: datetime) -> dict[str, Any]:
    found: list[State] = []
    for name in word.value.split(","):
        try:
            found.append(State(name.strip().lower()))
        except ValueError:
            plain = name.strip().lower()
            close = OTHER_STATES.get(plain) or next(iter(get_close_matches(plain, list(State), n=1)), None)
            hint = f"Did you mean state:{close}? " if close else ""
            known = _list([state.value for state in State])
            raise FilterError(word.text, f"there is no state {name!r}. {hint}States are {known}.") from None
    return {"states": tuple(dict.fromkeys(found))}


def _text(word: Word, _: datetime) -> dict[str, Any]:
    return {TEXTS[word.field]: word.value}


def _ids(word: Word, _: datetime) -> dict[str, Any]:
    return {"ids": tuple(dict.fromkeys(_id(word, one) for one in word.value.split(",")))}


def _parent(word: Word, _: datetime) -> dict[str, Any]:
    return {"parent_id": _id(word, word.value)}


def _id(word: Word, text: str) -> UUID:
    try:
        return parse_id(text)
    except ValueError as error:
        raise FilterError(word.text, str(error)) from None


def _worker(word: Word, _: datetime) -> dict[str, Any]:
    """A session's id, or a host, or a process on a host."""
    try:
        return {"session_id": UUID(word.value)}
    except ValueError:
        return {"worker": word.value}


def _argument(word: Word, _: datetime) -> dict[str, Any]:
    return {"args": (ArgumentIs(word.path, word.value),)}


def _order(word: Word, _: datetime) -> dict[str, Any]:
    if word.value not in ORDERS:
        raise FilterError(word.text, f"there is no order {word.value!r}. Orders are {_list(list(ORDERS))}.")
    return {"oldest_first": False} | ORDERS[word.value]


def _numbers(word: Word, _: datetime) -> dict[str, Any]:
    low, high = _ends(word)
    first = None if low is None else _number(word, low) + (word.sign == ">")
    last = None if high is None else _number(word, high) - (word.sign == "<")
    return _given(**{f"{word.field}_from": first, f"{word.field}_to": last})


def _number(word: Word, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) in PRIORITIES):
        more = ", lower runs first" if word.field == "priority" else ""
        said = f"{NUMBERS[word.field]}: a whole number from 0 to {PRIORITIES[-1]}{more}."
        raise FilterError(word.text, f"{text!r} is not {said}")
    return int(text)


def _moments(word: Word, now: datetime) -> dict[str, Any]:
    begin, end = _ends(word)
    if word.sign == ":" and ".." not in word.value and not DATE.fullmatch(word.value):
        raise FilterError(
            word.text,
            f"say which side is meant: {word.field}>{word.value} is later than that, {word.field}<{word.value} before "
            f"it. A whole day is {word.field}:{now:%Y-%m-%d}.",
        )
    first = None if begin is None else _moment(word, begin, now)
    until = None if end is None else _moment(word, end, now)
    if until is not None and DATE.fullmatch(end or "") and word.sign in (":", "<="):
        until += min(DAY, LAST - until)  # that day too
    return _given(**{f"{word.field}_from": first, f"{word.field}_until": until})


def _moment(word: Word, text: str, now: datetime) -> datetime:
    """`1h` is that long ago; a date or a time without a zone is in UTC."""
    try:
        ago = seconds(text)
    except ValueError:
        pass
    else:
        return _back(word, now, ago)
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise FilterError(
            word.text,
            f"{text!r} is neither a length of time (30s, 5m, 1h30m, 2d: that long ago) nor a moment (2026-11-01, "
            "2026-11-01T09:30+01:00).",
        ) from None


def _back(word: Word, now: datetime, ago: float) -> datetime:
    try:
        return now - timedelta(seconds=ago)
    except OverflowError:
        raise FilterError(word.text, "that is before the calendar begins.") from None


def _ends(word: Word) -> tuple[str | None, str | None]:
    """The two ends of a range; None where it is open."""
    match word.sign:
        case ">" | ">=":
            return word.value, None
        case "<" | "<=":
            return None, word.value
    low, dots, high = word.value.partition("..")
    if not dots:
        return word.value, word.value
    if not (low or high):
        raise FilterError(word.text, f"it has no end. Write for example {EXAMPLES[word.field]}.")
    return low or None, high or None


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


READERS: dict[str, Callable[[Word, datetime], dict[str, Any]]] = {
    "state": _states,
    **dict.fromkeys(TEXTS, _text),
    "id": _ids,
    "parent": _parent,
    "worker": _worker,
    "args.": _argument,
    "order": _order,
    **dict.fromkeys(NUMBERS, _numbers),
    "created": _moments,
    "finished": _moments,
}
RANGED = (*NUMBERS, "created", "finished")
EXAMPLES = {
    "state": "state:dead,pending",
    "queue": "queue:mail",
    "task": "task:send_mail",
    "tenant": "tenant:acme",
    "tag": "tag:import",
    "subject": "subject:order:7",
    "key": "key:order-7",
    "external": "external:x-9",
    "correlation": "correlation:checkout-12",
    "error": "error:SmtpError",
    "category": "category:ingestion",
    "id": "id:0198c1a2-6f1e-7c3a-9d2b-5e8f7a6b4c3d",
    "parent": "parent:0198c1a2-6f1e-7c3a-9d2b-5e8f7a6b4c3d",
    "worker": "worker:web-1",
    "args.": "args.user.id:7",
    "order": "order:priority",
    "priority": "priority:<50",
    "attempt": "attempt>0",
    "created": "created>1h",
    "finished": "finished<2026-11-01",
}
"""Each field in use."""
