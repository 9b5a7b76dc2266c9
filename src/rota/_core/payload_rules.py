"""What an app asks of its payloads: a tenant, a correlation, a key, a category, its references, and no secrets.

`PayloadRules` is what the app says; `Policy` is what that means for the jobs of
one task, as data, so that SQL and the command line ask for the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from uuid import UUID

from rota._core.categories import Category, Refs
from rota._core.job import NewJob
from rota._core.sensitive import Finding, findings
from rota.errors import ConfigError, RequiredMissing, SensitiveContent

if TYPE_CHECKING:
    from typing import TypeAlias

    Preset: TypeAlias = Literal["strict", "warn", "off"]

ARGUMENTS = {"tenant": "tenant_id", "correlation_id": "correlation_id", "key": "idempotency_key"}
"""What a job carries, and the argument that may say it."""
KEY_LIMIT = 1000
SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadRules:
    """What every job of an app must carry, and must not. As it stands: everything, `Rota(rules="strict")`."""

    tenant: bool = True
    correlation_id: bool = True
    """A UUID."""
    key: bool = True
    """An idempotency key."""
    category: bool = True
    refs: bool = True
    """The references of the job's category."""
    sensitive: Literal["refuse", "warn", "allow"] = "refuse"
    """What happens to a payload with secrets or content in it."""
    allow: tuple[str, ...] = ()
    """Arguments (by name or path) that may hold them nevertheless."""

    def __post_init__(self) -> None:
        if self.sensitive not in ("refuse", "warn", "allow"):
            raise ConfigError(
                f"PayloadRules(sensitive={self.sensitive!r}) is not known; choose refuse, warn or allow."
            )
        if isinstance(self.allow, str) or not all(isinstance(name, str) for name in self.allow):
            raise ConfigError(
                f"PayloadRules(allow={self.allow!r}) must be a list of names. Write allow=({self.allow!r},)."
            )
        object.__setattr__(self, "allow", tuple(self.allow))

    def policy(self, category: Category | None) -> Policy:
        """The same for jobs of one category."""
        asked = [name for name in ("tenant", "correlation_id", "key", "category") if getattr(self, name)]
        refs = category.refs if self.refs and category is not None else ()
        return Policy(tuple(asked), refs, self.sensitive == "refuse", self.allow)


def rules_from(said: Preset | PayloadRules) -> PayloadRules:
    """The rules that `Rota(rules=…)` names."""
    if isinstance(said, PayloadRules):
        return said
    if said == "strict":
        return PayloadRules()
    if said in ("warn", "off"):
        return PayloadRules(
            tenant=False,
            correlation_id=False,
            key=False,
            category=False,
            refs=False,
            sensitive="warn" if said == "warn" else "allow",
        )
    raise ConfigError(
        f'Rota(rules={said!r}) is not known. Choose "strict", "warn" (the default) or "off", or give PayloadRules(...).'
    )


class Policy(NamedTuple):
    """What the jobs of one task must carry. The default asks for nothing."""

    require: tuple[str, ...] = ()
    """Of tenant, correlation_id, key, category."""
    refs: Refs = ()
    refuse: bool = False
    """Whether sensitive content is refused."""
    allow: tuple[str, ...] = ()

    @property
    def or_none(self) -> Policy | None:
        """None where nothing is asked."""
        return self if self.require or self.refs or self.refuse else None

    def as_json(self) -> dict[str, Any]:
        return {
            "require": list(self.require),
            "refs": [list(choice) for choice in self.refs],
            "refuse": self.refuse,
            "allow": list(self.allow),
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Policy:
        return cls(
            tuple(said["require"]),
            tuple(tuple(choice) for choice in said["refs"]),
            said["refuse"],
            tuple(said["allow"]),
        )

    def applied(self, job: NewJob, *, by_schedule: bool = False) -> NewJob:
        """The job, with what its arguments say of tenant, correlation and key.

        RequiredMissing or SensitiveContent where it breaks the rules. A job
        that a schedule makes belongs to the system: its tick is its key, it
        starts a correlation, and may do without a tenant.
        """
        payload: dict[str, Any] = json.loads(job.payload_json)
        wrong: dict[str, str] = {}
        taken: dict[str, Any] = {}
        for name in self.require:
            if name not in ARGUMENTS or (by_schedule and name == "key"):
                continue
            taken[name], fault = _carried(name, getattr(job, name), payload.get(ARGUMENTS[name]))
            if fault is not None and not (by_schedule and taken[name] is None):
                wrong[ARGUMENTS[name]] = fault
        if "category" in self.require and job.category is None:
            wrong["category"] = (
                'a category is missing; say it in @app.task(category="…") or using(category="…")'
            )
        wrong |= missing_refs(payload, self.refs)
        if wrong:
            raise RequiredMissing(
                f"{job.task} cannot be enqueued: {'; '.join(wrong.values())}.", fields=wrong
            )
        if self.refuse:
            self.refuse_sensitive(job.task, payload)
        if job.gate is not None and job.tenant is None and taken.get("tenant"):
            taken["gate"] = job.gate.replace("serial::", f"serial:{taken['tenant']}:", 1)
        return job._replace(**taken) if taken else job

    def refuse_sensitive(self, task: str, payload: Mapping[str, Any]) -> None:
        found = list(findings(payload, allow=self.allow))
        if found:
            raise SensitiveContent(
                f"{task} cannot be enqueued: {said_of(found)}. Keep it where it belongs and pass "
                "a reference to it; a name that only looks so goes into PayloadRules(allow=…).",
                paths=[one.path for one in found],
            )


def _carried(name: str, said: str | None, given: object) -> tuple[str | None, str | None]:
    """What the job carries as its tenant, correlation or key, and what is wrong with that."""
    argument = ARGUMENTS[name]
    if given is not None:
        fault = _fault(argument, given)
        if fault is None and said not in (None, str(given)):
            fault = f"{argument} is {given!r} by its argument and {said!r} by {name}=; give one of them"
        return str(given), fault
    if said is not None:
        return said, _fault(argument, said, of_job=True)
    return None, f"{argument} is missing; pass using({name}=…), or give the task an argument {argument}"


def said_of(found: Collection[Finding]) -> str:
    """Findings in words. Never what was found."""
    shown = [str(one) for one in list(found)[:SHOWN]]
    if len(found) > SHOWN:
        shown.append(f"and {len(found) - SHOWN} more")
    return "; ".join(shown)


def missing_refs(payload: Mapping[str, Any], refs: Iterable[Iterable[str]]) -> dict[str, str]:
    """The references that are not there, each with a sentence about it."""
    wrong = {}
    for choice in map(tuple, refs):
        given = [payload[name] for name in choice if payload.get(name) is not None]
        if not given:
            wrong[choice[0]] = f"{' or '.join(choice)} is missing"
        elif not any(_is_ref(value) for value in given):
            wrong[choice[0]] = (
                f"{' or '.join(choice)} must be an id (a text or a whole number) or a list of ids"
            )
    return wrong


def _is_ref(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_ref(one) and not isinstance(one, list) for one in value)
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, str) and bool(value.strip())
    )


def required_faults(payload: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with the three that every payload of DOC-20 carries, each with a sentence about it."""
    wrong = {}
    for argument in ARGUMENTS.values():
        given = payload.get(argument)
        fault = f"{argument} is missing" if given is None else _fault(argument, given)
        if fault:
            wrong[argument] = fault
    return wrong


def _fault(argument: str, value: object, *, of_job: bool = False) -> str | None:
    """Why a value cannot be that. A job's own tenant is any text; as an argument it is the number of the tenant."""
    if argument == "tenant_id":
        if of_job or (isinstance(value, int) and not isinstance(value, bool)):
            return None
        return f"{argument} must be a whole number, not {_shown(value)}"
    if argument == "correlation_id":
        return None if _is_uuid(value) else f"{argument} must be a UUID, not {_shown(value)}"
    if not isinstance(value, str) or not value.strip():
        return f"{argument} must be a text that is not empty, not {_shown(value)}"
    if len(value.encode("utf-8", "replace")) > KEY_LIMIT:
        return f"{argument} has more than {KEY_LIMIT} bytes; use a hash or an id of it"
    return None


def _is_uuid(value: object) -> bool:
    if isinstance(value, UUID):
        return True
    try:
        return isinstance(value, str) and str(UUID(value)) == value.lower()
    except ValueError:
        return False


def _shown(value: object) -> str:
    from rota._core.redaction import redacted_text

    text = redacted_text(repr(value))
    return text if len(text) <= 60 else text[:59] + "…"
