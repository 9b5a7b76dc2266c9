"""Settings: arguments and flags > ROTA_* environment > rota.toml or [tool.rota] > the neighbours' variables > defaults.

Built once; the origin of each value is known. The address of the store is the
exception to "given or default": without one, a development machine gets the
embedded server, and production an error.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)

from rota._core.durations import seconds
from rota._core.payload import LIMIT_BYTES, WARN_BYTES
from rota._core.trace_link import checked_trace_url
from rota.errors import ConfigError

EMBEDDED = "embedded:"
LANES: Mapping[str, int | str] = {"fast": 3, "general": 5}
LANE_VARIABLES = {"fast": "WORKER_FAST_THREADS", "general": "WORKER_GENERAL_THREADS"}
POSTGRES_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")
PRODUCTION_SIGNS = (
    "KUBERNETES_SERVICE_HOST",
    "ECS_CONTAINER_METADATA_URI_V4",
    "ECS_CONTAINER_METADATA_URI",
    "AWS_LAMBDA_FUNCTION_NAME",
)
SCHEMES = ("postgresql", "postgres", "embedded", "memory")


def _duration(value: object) -> object:
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return seconds(value, "it")  # type: ignore[arg-type]


def _size(value: object) -> object:
    """Bytes, also written `512MB` or `2GiB`; a thousand and 1,024 are the same here."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", str(value).lower())
    if found is None:
        raise ValueError("it is not a size; write it like 512MB or 2GB")
    return int(float(found[1]) * 1024 ** " kmgt".index(found[2] or " "))


Seconds = Annotated[float, BeforeValidator(_duration)]
Interval = Annotated[Seconds, Field(gt=0)]
Bytes = Annotated[int, Field(gt=0)]


class Shown(NamedTuple):
    """A setting as people see it."""

    name: str
    value: str
    origin: str


class Settings(BaseModel):
    """Everything that can be set from outside. `Settings.load()` reads it; bad values are a ConfigError."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str | None = None
    """Where the jobs are, as it was given; `address()` decides what holds where nothing was."""
    listen_url: str | None = None
    """A direct address for wake-ups where `url` goes through a pooler."""
    env: str = "development"
    app: str | None = None
    """The app that commands use unless told: `module:attr` or `file.py`."""
    lanes: dict[str, int | str] = Field(default_factory=lambda: dict(LANES))
    """Slots a lane, or `slots:queue,queue`."""
    lease: Interval = 15.0
    """How long a silent worker keeps its jobs."""
    beat: Interval = 5.0
    poll: Interval = 1.0
    """How often a worker with free slots asks for work."""
    idle_poll: Interval = 5.0
    """How often it asks where wake-ups work and no job came for some seconds."""
    grace: Seconds = 25.0
    """How long running jobs may go on after a stop."""
    code_version: str | None = None
    """Which code workers run, such as a commit; without it, a hash of the files that define tasks."""
    crash_limit: Annotated[int, Field(ge=0)] = 5
    """So many jobs of one task that kill their process within an hour park the task; 0: never."""
    stall: Seconds = 1.0
    """How long an event loop may stand still before it is said."""
    stop_grace: Seconds = 5.0
    """How long a handler that was told to stop (timeout, cancel) is waited for."""
    processes: Annotated[int, Field(ge=0, le=256)] = 1
    """Child processes of `rota worker`; 0: jobs run in the command's own process, without a supervisor."""
    max_jobs: Annotated[int, Field(gt=0)] | None = None
    """After about so many jobs a child is replaced."""
    max_rss: Annotated[Bytes, BeforeValidator(_size)] | None = None
    """With more memory than this a child is replaced."""
    health_port: Annotated[str, BeforeValidator(str)] | None = None
    """Where `rota worker` answers probes: a port of this machine, or host:port."""
    payload_warn: Bytes = WARN_BYTES
    payload_limit: Bytes = LIMIT_BYTES
    result_limit: Bytes = LIMIT_BYTES
    log_format: Literal["auto", "text", "json"] = "auto"
    log_location: str | None = None
    """Where workers put the whole logs of jobs: `file:///var/log/rota` or `s3://bucket/logs`."""
    schedules: bool = True
    """Whether workers turn the ticks of schedules into jobs."""
    maintenance: tuple[str, ...] = ()
    """Windows in which no schedule ticks: `0 1 * * SUN for 2h`."""

    trace_url: str | None = None
    """Where the pages and the API say that a job's trace is: `https://jaeger.example/trace/{trace_id}`."""

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def load(cls, **given: Any) -> Settings:
        """Read all sources; `given` (arguments, flags) wins, and None means not given."""
        said = {name: value for name, value in given.items() if value is not None}
        values, origins = dict[str, Any](), dict[str, str]()
        for name, value, origin in _sources(_handed | said):
            if name not in values:  # the first to give a value wins
                values[name], origins[name] = value, origin
        try:
            settings = cls(**values)
        except ValidationError as error:
            raise ConfigError(_explain(error, origins)) from error
        settings._origins = origins
        if settings.origin("lanes") not in ("argument", "ROTA_LANES"):
            settings._take_lane_variables()
        return settings

    @field_validator("listen_url")
    @classmethod
    def _read_listen_url(cls, value: str | None) -> str | None:
        if value is None or value.lower().startswith(
            ("postgresql:", "postgresql+", "postgres:", "postgres+")
        ):
            return None if value is None else checked_url(value)
        raise ValueError("it is not an address of PostgreSQL; write postgresql://user:password@host/database")

    @field_validator("trace_url")
    @classmethod
    def _read_trace_url(cls, value: str | None) -> str | None:
        return None if value is None else checked_trace_url(value)

    @field_validator("lanes", mode="before")
    @classmethod
    def _read_lanes(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [part.partition("=") for part in re.split(r",(?=[^,=]+=)|;", value)]
        if not all(name.strip() and equals for name, equals, _ in pairs):
            raise ValueError('it is not understood; write it like "fast=3,general=5"')
        return {
            name.strip(): int(text) if (text := slots.strip()).isdigit() else text for name, _, slots in pairs
        }

    @field_validator("maintenance", mode="before")
    @classmethod
    def _read_maintenance(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(text.strip() for text in value.split(";") if text.strip())

    @model_validator(mode="after")
    def _fits_together(self) -> Settings:
        if self.lease < 2 * self.beat:
            raise ValueError(
                f"lease ({self.lease:g} s) must be at least twice beat ({self.beat:g} s), "
                "or one late heartbeat costs a worker its jobs"
            )
        return self

    def _take_lane_variables(self) -> None:
        for lane, variable in LANE_VARIABLES.items():
            given = os.environ.get(variable)
            if not given:
                continue
            if not given.isdigit():
                raise ConfigError(
                    f"{variable} is {given!r}; it must be a whole number of slots. Set it to, say, 5."
                )
            self.lanes[lane] = int(given)
            self._origins["lanes"] = f"{self.origin('lanes')}, {variable}"
            if int(given) == 0:
                del self.lanes[lane]

    def handed(self) -> dict[str, Any]:
        """What is not a default, as plain values, for a child process that has no environment to read."""
        return {name: getattr(self, name) for name in type(self).model_fields if name in self._origins}

    def origin(self, name: str) -> str:
        """Where a value comes from: `argument`, `ROTA_…`, a file, a neighbour's variable, or `default`."""
        return self._origins.get(name, "default")

    @property
    def production(self) -> str | None:
        """What says that this is production, if anything does."""
        if self.env.lower() in ("production", "prod"):
            return f"{self.origin('env')}={self.env}"
        return next((sign for sign in PRODUCTION_SIGNS if os.environ.get(sign)), None)

    def address(self) -> str:
        """Where the jobs are: the given URL, checked, or the embedded server where that is allowed."""
        if self.url is not None:
            return checked_url(self.url, self.origin("url"))
        if self.production is not None:
            raise ConfigError(
                f"no database address is set, and this is production ({self.production}). "
                "Set ROTA_URL (or DATABASE_URL) to postgresql://…; ROTA_URL=embedded: keeps jobs here on purpose."
            )
        return EMBEDDED

    def shown(self) -> list[Shown]:
        """Every setting with its value and origin; passwords are masked."""
        rows = []
        for name in type(self).model_fields:
            value = getattr(self, name)
            text = masked(value) if isinstance(value, str) else "" if value is None else str(value)
            if isinstance(value, dict):
                text = ",".join(f"{lane}={slots}" for lane, slots in value.items())
            elif isinstance(value, tuple):
                text = "; ".join(value)
            rows.append(Shown(name, text, self.origin(name)))
        return rows

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{row.name}={row.value!r}' for row in self.shown() if row.origin != 'default')})"

    __str__ = __repr__


_handed: dict[str, Any] = {}


def hand_over(values: Mapping[str, Any]) -> None:
    """Take these as given wherever settings are loaded in this process: what its parent's `handed()` said."""
    _handed.update(values)


def _sources(given: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Every value that is set somewhere, with where that is; what counts most comes first."""
    yield from ((name, value, "argument") for name, value in given.items())
    variables = {name.upper(): text for name, text in os.environ.items() if text}
    for name in Settings.model_fields:
        variable = f"ROTA_{name.upper()}"
        if variable in variables:
            yield name, variables[variable], variable
    file, values = _read_file()
    yield from ((name, value, file) for name, value in values.items())
    yield from _neighbour()


def _read_file() -> tuple[str, dict[str, Any]]:
    """rota.toml of the current directory, else [tool.rota] of its pyproject.toml."""
    for file, table in (("rota.toml", ()), ("pyproject.toml", ("tool", "rota"))):
        path = Path(file)
        if not path.is_file():
            continue
        try:
            found: Any = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path.absolute()} is not valid TOML: {error}. Correct it there.") from error
        except OSError as error:
            raise ConfigError(f"{path.absolute()} cannot be read: {error}. Check its permissions.") from error
        for part in table:
            found = found.get(part, {}) if isinstance(found, dict) else found
        if not isinstance(found, dict):
            raise ConfigError(
                f"{path.absolute()}: tool.rota must be a table of settings, not {found!r}. Write [tool.rota]."
            )
        if found or not table:
            return (file if not table else f"{file} [tool.rota]"), found
    return "", {}


def _neighbour() -> Iterator[tuple[str, str, str]]:
    """An address that was meant for others too: DATABASE_URL, or what libpq reads by itself."""
    if url := os.environ.get("DATABASE_URL"):
        yield "url", url, "DATABASE_URL"
    for variable in POSTGRES_VARIABLES:
        if os.environ.get(variable):
            yield "url", "postgresql://", variable


def checked_url(url: str, origin: str = "argument") -> str:
    """A URL that Rota can open, without the driver that other tools write into it."""
    scheme, colon, rest = url.strip().partition(":")
    kind, _, _driver = scheme.lower().partition("+")
    if colon and kind in SCHEMES and (kind in ("embedded", "memory") or rest.startswith("//")):
        return f"{'postgresql' if kind == 'postgres' else kind}:{rest}"
    near = get_close_matches(kind, SCHEMES, n=1)
    hint = f" Did you mean {near[0]}://?" if near and colon else ""
    instead = " Set ROTA_URL for Rota's own database." if origin == "DATABASE_URL" else ""
    raise ConfigError(
        f"the address {masked(url)!r} (from {origin}) is not one that Rota can open.{hint} "
        f"Use postgresql://user:password@host/database, embedded: or memory://.{instead}"
    )


def masked(url: str) -> str:
    """An address without its password, fit for logs and screens."""
    shown = re.sub(r"(\bpassword=)('[^']*'|[^&\s]*)", r"\1***", url)
    start = shown.find("://")
    if start < 0:
        return shown
    # Up to the last @ of the authority: a password may hold one that nobody encoded.
    authority = re.split(r"[/?#](?=[^@]*$)", shown[start + 3 :], maxsplit=1)[0]
    login, at, _ = authority.rpartition("@")
    if not at or ":" not in login:
        return shown
    user = login.split(":", 1)[0]
    return f"{shown[: start + 3]}{user}:***{shown[start + 3 + len(login) :]}"


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    first = error.errors(include_url=False)[0]
    where = str(first["loc"][0]) if first["loc"] else ""
    origin = origins.get(where, "argument")
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        near = get_close_matches(where, Settings.model_fields, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(Settings.model_fields)}."
        return f"there is no setting {where!r} (from {origin}); {hint}"
    if not where:
        return f"the settings do not fit together: {message}. `rota config` shows where each comes from."
    got = masked(first["input"]) if isinstance(first["input"], str) else first["input"]
    return (
        f"the setting {where} is {got!r} (from {origin}), which cannot be used: {message}. Change it there."
    )
