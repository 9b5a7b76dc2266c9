"""How long ended jobs are kept: the policies, the purge by hand, and what the archive says of one job."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rota._core.actions import Audit
from rota._core.retention import ARCHIVED, KEPT, PRUNED, ArchivedJob, Foreseen, Policy, Pruned, Pruning
from rota.admin.reads import Reads
from rota.errors import ConfigError, JobNotFound, RotaError
from rota.stores.retention_contract import Retention

if TYPE_CHECKING:
    from uuid import UUID

ABOUT = "retention"
DEFAULTS = Retention()


class Retained(Reads):
    """Policies, and what they let go."""

    async def policies(self) -> Sequence[Policy]:
        """The policies that people set, the most specific first; `default_policies` stand behind them."""
        return await self.store.policies()

    async def set_policy(self, policy: Policy, *, reason: str | None = None) -> Policy:
        """Keep such jobs so long from now on, in place of the policy about the same ones."""
        checked = _checked(policy)._replace(set_by=self.actor, reason=reason)
        before = await self._policy(checked)
        audit = Audit(
            self.actor,
            "retention_set",
            None,
            reason,
            None if before is None else told(before),
            told(checked),
            about=f"{ABOUT}:{checked.words}",
        )
        await self.store.set_policy(checked, audit)
        return checked

    async def remove_policy(self, policy: Policy, *, reason: str | None = None) -> Policy | None:
        """Let the next more general policy count again; the one that was removed, or None: there was none."""
        before = await self._policy(policy)
        if before is None:
            return None
        audit = Audit(
            self.actor, "retention_removed", None, reason, told(before), about=f"{ABOUT}:{policy.words}"
        )
        return before if await self.store.remove_policy(policy, audit) else None

    async def _policy(self, wanted: Policy) -> Policy | None:
        return next((one for one in await self.store.policies() if one.scope == wanted.scope), None)

    async def foresee(self, wanted: Pruning) -> Sequence[Foreseen]:
        """What `prune` would let go now, by policy and state, counted exactly; nothing is changed."""
        return await self.store.foresee(_meant(wanted), DEFAULTS)

    async def prune(
        self,
        wanted: Pruning,
        *,
        reason: str | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Pruned:
        """Do now what the janitor does about once an hour, for such jobs only.

        In small batches with pauses. What was done stays done when it is
        stopped, and the audit says how much that was.
        """
        from rota.new_ids import new_id

        meant = _meant(wanted)
        about, so_far = f"prune:{new_id()}", [0]

        def heard(jobs: int) -> None:
            so_far[0] = jobs
            if on_progress is not None:
                on_progress(jobs)

        await self.store.note(Audit(self.actor, "prune", None, reason, after=asked(meant), about=about))
        try:
            pruned = await self.store.prune(meant, DEFAULTS, progress=heard)
        except BaseException:
            stopped = Audit(self.actor, "prune_stopped", None, after=f"{so_far[0]} archived", about=about)
            with suppress(RotaError):
                await asyncio.shield(self.store.note(stopped))
            raise
        done = "nothing: somebody else purges" if pruned.busy else f"{pruned.jobs} archived"
        await self.store.note(Audit(self.actor, "pruned", None, after=done, about=about))
        return pruned

    async def archived(self, job_id: UUID) -> ArchivedJob:
        """What is left of a job that retention let go, or `JobNotFound`."""
        rows = await self.store.archived([job_id])
        if not rows:
            raise JobNotFound(job_id)
        return rows[0]


def default_policies() -> tuple[Policy, ...]:
    """What counts where nobody set a policy."""
    kept = {state: DEFAULTS.of(state) for state in PRUNED} | {ARCHIVED: DEFAULTS.archive}
    return tuple(Policy(keep, state) for state, keep in kept.items())


def told(policy: Policy) -> str:
    """How long a policy keeps, for the audit."""
    return "for ever" if policy.keep is None else f"{policy.keep:.10g} s"


def asked(wanted: Pruning) -> str:
    """What a purge is about, for the audit."""
    said = {"state": ",".join(wanted.states), "task": wanted.task, "tenant": wanted.tenant}
    words = [f"{name}={value}" for name, value in said.items() if value]
    if wanted.older_than is not None:
        words.append(f"older_than={wanted.older_than:.10g}s")
    return " ".join(words) or "all that is past its time"


def _checked(policy: Policy) -> Policy:
    if policy.state is not None and policy.state not in KEPT:
        raise ConfigError(
            f"a retention policy is about jobs that have ended, not about {policy.state!r}; choose {', '.join(KEPT)}."
        )
    if policy.state == ARCHIVED and (policy.task or policy.tenant):
        raise ConfigError(
            "the archive is kept as a whole, a month at a time: leave the task and the tenant out of its policy."
        )
    if policy.keep is not None and not 0 <= policy.keep < 1e10:
        raise ConfigError(f"jobs cannot be kept for {policy.keep!r} s; give 0 or more, and below 300 years.")
    for name, value in (("task", policy.task), ("tenant", policy.tenant)):
        if value is not None and not value.strip():
            raise ConfigError(
                f"the {name} of a retention policy is empty; name one, or leave it out for any."
            )
    return policy


def _meant(wanted: Pruning) -> Pruning:
    strange = [state for state in wanted.states if state not in PRUNED]
    if strange:
        raise ConfigError(
            f"only jobs that have ended can be pruned, not {', '.join(strange)}; choose {', '.join(PRUNED)}."
        )
    return wanted
