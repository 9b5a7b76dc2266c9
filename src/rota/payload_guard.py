"""The guard at the door: what an app's payload rules do to the jobs of one task, when they are enqueued."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection

from rota._core.categories import Categories
from rota._core.job import NewJob
from rota._core.payload import PayloadWarning
from rota._core.payload_rules import PayloadRules, Policy, said_of
from rota._core.sensitive import findings, suspicious


class Guard:
    """Checks the jobs of one task. Tasks of which nothing is asked have none."""

    def __init__(self, task: str, rules: PayloadRules, categories: Categories) -> None:
        self._task, self._rules, self._categories = task, rules, categories
        self._warned = rules.sensitive != "warn"
        self._policies: dict[str | None, Policy] = {}

    def passed(self, job: NewJob, *, by_schedule: bool = False) -> NewJob:
        """The job as it may be stored, or an error that says which rule it breaks."""
        if not self._warned:
            self._warn(job)
        return self.policy(job.category).applied(job, by_schedule=by_schedule)

    def policy(self, category: str | None) -> Policy:
        """What is asked of jobs of this category."""
        known = self._policies.get(category)
        if known is None:
            of = None if category is None else self._categories[category]
            known = self._policies[category] = self._rules.policy(of)
        return known

    def _warn(self, job: NewJob) -> None:
        """Say once a task that a job of it carries what it should not."""
        found = list(findings(json.loads(job.payload_json), allow=self._rules.allow))
        if found:
            self._warned = True
            warnings.warn(
                f"a job of {self._task} carries what everybody who sees the queue can read: {said_of(found)}. "
                "Keep it where it belongs and pass a reference to it. A name that only looks so goes into "
                'PayloadRules(allow=...); Rota(rules="strict") refuses such jobs.',
                PayloadWarning,
                stacklevel=7,
            )


def guard_of(
    task: str, rules: PayloadRules, categories: Categories, names: Callable[[], Collection[str]]
) -> Guard | None:
    """The guard of a task with arguments of these names; None where no look at its jobs is worth its time."""
    asks = bool(rules.refs or rules.policy(None).require)
    if asks or rules.sensitive == "refuse" or (rules.sensitive == "warn" and suspicious(names())):
        return Guard(task, rules, categories)
    return None
