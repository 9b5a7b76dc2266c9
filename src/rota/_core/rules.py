"""Where a task's jobs get their keys from, as data: SQL and the command line make the jobs that the code makes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from rota._core.job import OnDuplicate, Scope
from rota._core.payload_rules import Policy
from rota.errors import EnqueueError

TEXT_LIMIT = 1000
"""UTF-8 bytes that a name, key or tag may have: stores keep them in indexes."""


class KeyRule(NamedTuple):
    """How one key is found."""

    path: str | None
    """The argument whose text it is; None: only the task's own code can tell."""
    default: str | None = None
    """Its text where the argument is not given."""

    def of(self, payload: Mapping[str, Any]) -> str | None:
        """The key of a job with these arguments; None: it has none."""
        assert self.path is not None
        if self.path not in payload:
            return self.default
        value = payload[self.path]
        return value if value is None or isinstance(value, str) else json.dumps(value)


class TaskRules(NamedTuple):
    """What a decorator says of the keys and tags of its jobs."""

    key: KeyRule | None = None
    unique: KeyRule | None = None
    serial: KeyRule | None = None
    unique_scope: str = Scope.STARTED
    unique_window: float | None = None
    on_duplicate: str = OnDuplicate.KEEP
    tags: tuple[str, ...] = ()
    policy: Policy | None = None
    """What its jobs must carry; None: nothing is asked."""

    def as_json(self) -> dict[str, Any]:
        """Only what is not as in any other task."""
        said: dict[str, Any] = {
            name: rule._asdict()
            for name, rule in (("key", self.key), ("unique", self.unique), ("serial", self.serial))
            if rule is not None
        }
        if self.unique is not None:
            said["unique"] |= {
                "scope": self.unique_scope,
                "window": self.unique_window,
                "on_duplicate": self.on_duplicate,
            }
        if self.tags:
            said["tags"] = list(self.tags)
        if self.policy is not None:
            said["policy"] = self.policy.as_json()
        return said

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> TaskRules:
        rules: dict[str, Any] = {
            name: KeyRule(said[name]["path"], said[name]["default"])
            for name in ("key", "unique", "serial")
            if name in said
        }
        unique = said.get("unique", {})
        return cls(
            **rules,
            unique_scope=unique.get("scope", Scope.STARTED),
            unique_window=unique.get("window"),
            on_duplicate=unique.get("on_duplicate", OnDuplicate.KEEP),
            tags=tuple(said.get("tags", ())),
            policy=Policy.from_json(said["policy"]) if "policy" in said else None,
        )

    def terms(self, task: str, payload: Mapping[str, Any], said: Collection[str]) -> dict[str, Any]:
        """The keys and tags of a job with these arguments, in the words of a new job, where nothing is said of them.

        EnqueueError where only the task's own code can tell.
        """
        found: dict[str, Any] = {}
        for name, rule in (("key", self.key), ("unique_key", self.unique), ("serial", self.serial)):
            if rule is None or name in said:
                continue
            if rule.path is None:
                raise EnqueueError(
                    f"{task} finds its {name.replace('_', ' ')} by a function of its code, which is not here. "
                    "Nothing was stored. Enqueue it where its code is, or give the key yourself."
                )
            text = rule.of(payload)
            if text is None:
                continue
            if not text or len(text.encode()) > TEXT_LIMIT:
                raise EnqueueError(
                    f"the {name.replace('_', ' ')} of {task} is its argument {rule.path!r}, and that is "
                    f"{'empty' if not text else 'too long'}. Nothing was stored. A key has 1 to {TEXT_LIMIT} bytes."
                )
            found[name] = text
        if "unique_key" in found:
            found |= {
                "unique_scope": Scope(self.unique_scope),
                "unique_window": self.unique_window,
                "on_duplicate": OnDuplicate(self.on_duplicate),
            }
        if self.tags and "tags" not in said:
            found["tags"] = self.tags
        return found
