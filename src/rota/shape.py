"""Type hints as the shape of JSON: arguments and results are checked, written and read by pydantic.

Built at first use of a task, because building costs milliseconds; using it costs
one call into Rust. Arguments that the caller leaves to their defaults are not
stored, so a job enqueued today gets tomorrow's default.
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, NotRequired, Required

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, SchemaSerializer, SchemaValidator, to_json
from pydantic_core.core_schema import CoreConfig
from typing_extensions import TypedDict  # pydantic asks for this one before Python 3.12

from rota._core.redaction import redacted, redacted_text
from rota.errors import PayloadInvalid, TaskError

_CONFIG = ConfigDict(extra="forbid", populate_by_name=True, val_json_bytes="base64")
# A TypedDict's own config reaches its checks, not its writing: that follows the outermost config.
_JSON = CoreConfig(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
_SHOWN_PROBLEMS = 3
_SHOWN_VALUE = 60
_PUBLISHED = 500
"""So many characters of a doc, or of a default, are published."""


class Arguments:
    """The arguments of one function, as one JSON object by parameter name."""

    def __init__(self, task: str, fn: Callable[..., Any], hints: Mapping[str, Any]) -> None:
        self.task = task
        self._hints = {name: hint for name, hint in hints.items() if name != "return"}
        signature = inspect.signature(fn)
        parameters = signature.parameters.values()
        self.named = {p.name: p for p in parameters if p.kind is not p.VAR_KEYWORD}
        self.positional = tuple(p.name for p in self.named.values() if p.kind is not p.KEYWORD_ONLY)
        self.only = (
            next(iter(self.named)) if len(self.named) == 1 and len(signature.parameters) == 1 else None
        )
        """The parameter of a task that has just one."""
        self.alone = self.only if self.only in self.positional else None
        """The same, where it may be given by place."""
        self._doc = (
            " ".join((fn.__doc__ or "").partition("\n\n")[0].split())[:_PUBLISHED]
            if inspect.isroutine(fn)
            else ""
        )
        self._takes = str(signature.replace(return_annotation=inspect.Signature.empty))
        self._positional_only = tuple(p.name for p in self.named.values() if p.kind is p.POSITIONAL_ONLY)
        rest = next((p for p in parameters if p.kind is p.VAR_KEYWORD), None)
        self._rest = None if rest is None else _rest_adapter(task, hints.get(rest.name, Any))
        self._adapter = self._build(fn, hints)
        self._check, self._read = (
            self._adapter.validator.validate_python,
            self._adapter.validator.validate_json,
        )
        self._serializer = SchemaSerializer(self._adapter.core_schema, _JSON)
        self._write = self._serializer.to_json

    def _build(self, fn: Callable[..., Any], hints: Mapping[str, Any]) -> TypeAdapter[dict[str, Any]]:
        fields: dict[str, Any] = {}
        for name, parameter in self.named.items():
            hint = hints.get(name, Any)
            fields[name] = Required[hint] if parameter.default is parameter.empty else NotRequired[hint]
        make: Any = TypedDict
        shape: Any = make(fn.__name__, fields)
        shape.__pydantic_config__ = _CONFIG if self._rest is None else {**_CONFIG, "extra": "allow"}
        try:
            return TypeAdapter(shape)
        except PydanticUserError as error:
            raise TaskError(self._unusable(hints, error)) from error

    def _unusable(self, hints: Mapping[str, Any], error: PydanticUserError) -> str:
        """Find the parameter whose hint pydantic cannot use."""
        for name in self.named:
            try:
                TypeAdapter(hints.get(name, Any))
            except PydanticUserError as its_error:
                return (
                    f"task {self.task!r}: the type {_type_name(hints.get(name))} of argument {name!r} has no JSON form "
                    f"({_first_line(its_error)}). Use plain types, pydantic models or dataclasses, or pass an id."
                )
        return f"task {self.task!r}: its type hints cannot be used ({_first_line(error)})."

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give every argument its name."""
        if not args:
            return kwargs
        if len(args) > len(self.positional):
            raise PayloadInvalid(
                f"{self.task} got {len(args)} positional arguments and takes {len(self.positional)}. "
                f"Its arguments are {self._takes}."
            )
        fields = dict(zip(self.positional, args))  # noqa: B905 - the word alone takes as long as the rest
        if kwargs:
            twice = fields.keys() & kwargs.keys()
            if twice:
                raise PayloadInvalid(
                    f"{self.task} got argument {min(twice)!r} twice: once by place and once by name. Give it once."
                )
            fields.update(kwargs)
        return fields

    def checked(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Check arguments by name against the hints; answers what they became."""
        try:
            valid: dict[str, Any] = self._check(fields)
            return valid if self._rest is None else self._with_rest(valid)
        except ValidationError as error:
            raise PayloadInvalid(f"{self.task} cannot be enqueued: {self._explain(error)}") from error

    def written(self, valid: dict[str, Any]) -> bytes:
        """Write checked arguments as JSON."""
        try:
            raw = self._write(valid, by_alias=True, round_trip=True, warnings=False)
        except PydanticSerializationError as error:
            raise PayloadInvalid(
                f"{self.task} cannot be enqueued: {self._unwritable(valid, error)}"
            ) from error
        if b"null" in raw:  # pydantic writes NaN as null, which would come back as None
            lost = not_a_number(self._serializer.to_python(valid))
            if lost is not None:
                raise PayloadInvalid(
                    f"{self.task} cannot be enqueued: {lost} is NaN or infinite, which JSON has no word for. "
                    "Pass None or a text instead."
                )
        return raw

    def read(self, payload_json: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Read a stored payload straight into call arguments."""
        try:
            fields: dict[str, Any] = self._read(payload_json)
            if self._rest is not None:
                fields = self._with_rest(fields)
        except ValidationError as error:
            raise PayloadInvalid(
                f"the stored arguments do not fit {self.task}: {self._explain(error)}"
            ) from error
        if not self._positional_only:
            return (), fields
        return tuple(fields.pop(name) for name in self._positional_only if name in fields), fields

    def called(self, valid: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Checked arguments as a full call, defaults filled in."""
        full = {name: valid.get(name, parameter.default) for name, parameter in self.named.items()}
        args = tuple(full[name] for name in self.positional)
        return args, {name: value for name, value in {**full, **valid}.items() if name not in self.positional}

    def names(self) -> set[str]:
        """Every name in a payload that its types give away, at any depth."""
        return {*self.named, *(name for hint in self._hints.values() for name in names_in(hint))}

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the payload, with what the function says of itself: its doc, and defaults that JSON has.

        Forms show them. A default that should not be seen is left out.
        """
        schema = self._adapter.json_schema()
        if self._doc:
            schema["description"] = self._doc
        for name, parameter in self.named.items():
            if parameter.default is parameter.empty:
                continue
            with suppress(PayloadInvalid, ValidationError):
                default = json.loads(self.written({name: parameter.default}))[name]
                if len(str(default)) <= _PUBLISHED and redacted(default, name=name) == default:
                    schema["properties"][name]["default"] = default
        return schema

    def _with_rest(self, fields: dict[str, Any]) -> dict[str, Any]:
        assert self._rest is not None
        rest = {name: value for name, value in fields.items() if name not in self.named}
        return {**fields, **self._rest.validate_python(rest)}

    def _explain(self, error: ValidationError) -> str:
        problems = error.errors(include_url=False, include_context=False)
        said = [self._problem(p["type"], p["loc"], p["msg"], p["input"]) for p in problems[:_SHOWN_PROBLEMS]]
        if len(problems) > _SHOWN_PROBLEMS:
            said.append(f"and {len(problems) - _SHOWN_PROBLEMS} more problems")
        return "; ".join(said) + f". Its arguments are {self._takes}."

    def _problem(self, kind: str, where: tuple[int | str, ...], message: str, got: object) -> str:
        name = _path(where)
        if kind == "missing":
            return f"argument {name!r} is missing"
        if kind == "extra_forbidden" and len(where) == 1:
            close = get_close_matches(name, self.named, n=1)
            return f"it has no argument {name!r}" + (f" (did you mean {close[0]!r}?)" if close else "")
        if not where:
            return f"{message}, got {_clipped(got)}"
        return f"argument {name!r}: {message}, got {_clipped(got, where)}"

    def _unwritable(self, valid: dict[str, Any], error: PydanticSerializationError) -> str:
        for name, value in valid.items():
            try:
                to_json(value)
            except (PydanticSerializationError, ValueError) as its_error:
                return f"argument {name!r} cannot be written as JSON ({reason(its_error)}). Pass plain values or an id."
        return f"its arguments cannot be written as JSON ({reason(error)}). Pass plain values or an id."


class Result:
    """What a function returns, as JSON."""

    def __init__(self, task: str, hint: Any) -> None:
        self.task = task
        try:
            schema = TypeAdapter(hint).core_schema
        except PydanticUserError:
            schema = TypeAdapter(
                Any
            ).core_schema  # a type without JSON form is found out when one is returned
        self._read = SchemaValidator(schema, _JSON).validate_json
        self._serializer = SchemaSerializer(schema, _JSON)
        self._write = self._serializer.to_json

    def written(self, value: Any) -> bytes:
        try:
            raw = self._write(value, by_alias=True, round_trip=True, warnings=False)
        except (PydanticSerializationError, TypeError) as error:
            raise PayloadInvalid(
                f"the result of {self.task} cannot be stored as JSON ({reason(error)}). "
                "Return plain values, a pydantic model or a dataclass, or None."
            ) from error
        if b"null" in raw:
            lost = not_a_number(self._serializer.to_python(value, warnings=False))
            if lost is not None:
                raise PayloadInvalid(
                    f"the result of {self.task} cannot be stored: {lost} is NaN or infinite, "
                    "which JSON has no word for. Return None or a text instead."
                )
        return raw

    def read(self, result_json: str) -> Any:
        try:
            return self._read(result_json)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            raise PayloadInvalid(
                f"the stored result of {self.task} does not fit its return type: "
                f"{_path(first['loc']) or 'it'}: {first['msg']}, got {_clipped(first['input'])}. "
                "`(await handle.refresh()).result` reads it as plain JSON."
            ) from error


def hints_of(task: str, fn: Callable[..., Any], locals_: Mapping[str, Any] | None) -> dict[str, Any]:
    """The type hints of a function, as types."""
    try:
        return typing.get_type_hints(fn, localns=dict(locals_ or {}), include_extras=True)
    except NameError as error:
        raise TaskError(
            f"task {task!r}: its type hints name {error.name!r}, which is not there at run time. "
            "Import it outside `if TYPE_CHECKING:` in the module of the task."
        ) from error


def names_in(hint: Any, seen: frozenset[Any] = frozenset()) -> Iterator[str]:
    """The names of all fields of a type, and of the types in it: models, dataclasses, typed dictionaries."""
    for inner in typing.get_args(hint):
        yield from names_in(inner, seen)
    if not isinstance(hint, type) or hint in seen:
        return
    fields: Mapping[str, Any] = getattr(hint, "model_fields", None) or {}
    if not fields:
        with suppress(NameError):  # of a type that is there for checkers only
            fields = getattr(hint, "__annotations__", {})
    for name, field in fields.items():
        yield getattr(field, "serialization_alias", None) or getattr(field, "alias", None) or name
        yield from names_in(getattr(field, "annotation", field), seen | {hint})


def not_a_number(value: Any, path: str = "") -> str | None:
    """Where in a value a NaN or an infinity hides."""
    if isinstance(value, float):
        return (path or "the value") if value != value or value in (_INF, -_INF) else None  # noqa: PLR0124 - NaN
    if isinstance(value, Mapping):
        inner = ((f"{path}.{name}" if path else str(name), part) for name, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = ((f"{path}[{place}]", part) for place, part in enumerate(value))
    else:
        return None
    return next((found for where, part in inner if (found := not_a_number(part, where))), None)


_INF = float("inf")


def reason(error: Exception) -> str:
    """Why something has no JSON form."""
    text = _first_line(error).removeprefix("Error serializing to JSON: ")
    if "surrogates not allowed" in text:
        return "it contains a lone surrogate, which is not text; decode it with errors='replace'"
    return text


def _rest_adapter(task: str, hint: Any) -> TypeAdapter[dict[str, Any]]:
    try:
        if typing.get_origin(hint) is typing.Unpack:
            return TypeAdapter(typing.get_args(hint)[0])
        return TypeAdapter(dict[str, hint])
    except PydanticUserError as error:
        raise TaskError(
            f"task {task!r}: the type of its ** arguments has no JSON form ({_first_line(error)}). Use plain types."
        ) from error


def _path(where: tuple[int | str, ...]) -> str:
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _clipped(value: object, where: tuple[int | str, ...] = ()) -> str:
    """A value as an error may quote it: short, and without secrets."""
    name = next((part for part in reversed(where) if isinstance(part, str)), "")
    shown = redacted_text(repr(redacted(value, name=name)))
    return shown if len(shown) <= _SHOWN_VALUE else shown[: _SHOWN_VALUE - 1] + "…"


def _type_name(hint: Any) -> str:
    return getattr(hint, "__qualname__", None) or str(hint)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")
