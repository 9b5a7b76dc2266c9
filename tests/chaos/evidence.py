"""All records of one run side by side, and the story that they tell of one job."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any, NamedTuple

from chaos.calendar import Due
from chaos.canaries import Shown
from chaos.effects import Effect
from chaos.facts import Life, Row, Samples, Tables, Tried
from chaos.fleet import Death, Freeze
from chaos.journal import Entry

NEVER = float("inf")


class Outage(NamedTuple):
    """A time in which the store could not be reached, or not in time."""

    begin: float
    end: float


class Limits(NamedTuple):
    """How much one run may use."""

    connections: int = 100
    notifications: float = 0.25
    memory: int = 400_000_000


class Evidence:
    """What the journal, the effect log, the tables, the sampler and the supervisor say."""

    def __init__(
        self,
        entries: list[Entry],
        effects: list[Effect],
        tables: Tables,
        *,
        samples: Samples | None = None,
        deaths: list[Death] | None = None,
        freezes: list[Freeze] | None = None,
        outages: list[Outage] | None = None,
        lease: float = 15.0,
        orphans: list[int] | None = None,
        stubborn: list[int] | None = None,
        limits: Limits | None = None,
        ends: tuple[str, ...] = ("completed",),
        due: list[Due] | None = None,
        shown: list[Shown] | None = None,
        tenants: tuple[str, ...] = (),
        answered: bool = True,
    ) -> None:
        self.entries, self.effects, self.tables = entries, effects, tables
        self.samples = samples or Samples()
        self.deaths, self.freezes, self.orphans = deaths or [], freezes or [], orphans or []
        self.outages, self.lease = outages or [], lease
        self.stubborn = stubborn or []
        self.limits = limits or Limits()
        self.ends = ends
        """How jobs may end in this run."""
        self.due = due or []
        """The ticks that schedules had to take in this run."""
        self.shown, self.tenants = shown or [], tenants
        self.answered = answered
        """Whether every answer of the store arrived: nobody stood between it and its clients."""

    def part(self, name: str) -> list[Any]:
        """One kind of records: `entries`, `effects`, `rows`, `tried`, `lives`, `deaths`, `freezes` or `outages`."""
        found: list[Any] = getattr(self.tables if name in Tables._fields else self, name)
        return found

    def but(self, **changes: list[Any]) -> Evidence:
        """The same evidence, with other records of some kinds."""
        tables = {name: changes.pop(name, getattr(self.tables, name)) for name in Tables._fields}
        kinds = ("deaths", "freezes", "outages", "orphans", "stubborn", "due", "shown")
        return Evidence(
            changes.pop("entries", self.entries),
            changes.pop("effects", self.effects),
            Tables(**tables),
            samples=self.samples,
            lease=self.lease,
            limits=self.limits,
            ends=self.ends,
            tenants=self.tenants,
            answered=self.answered,
            **{name: changes.pop(name, getattr(self, name)) for name in kinds},
        )

    @property
    def calm(self) -> bool:
        """Whether nobody was killed, frozen or cut off, not even by a job: then every end was counted.

        A worker that did not hear that an end was written, and whose job has since
        been claimed again, learns only that the job has moved on: it counts nothing.
        """
        killed = any(death.forced or not death.wanted for death in self.deaths)
        killed = killed or any(tried.error_class in ("lost", "crash") for tried in self.tables.tried)
        return self.answered and not (killed or self.freezes or self.outages or self.stubborn)

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """The stored jobs by the key in their payload."""
        found: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self.tables.rows:
            found[row.key].append(row)
        return found

    @cached_property
    def runs(self) -> dict[str, list[Effect]]:
        """The executions by job, in the order of their claims."""
        found: defaultdict[str, list[Effect]] = defaultdict(list)
        for effect in self.effects:
            found[effect.job].append(effect)
        return {job: sorted(effects, key=lambda effect: effect.fence) for job, effects in found.items()}

    @cached_property
    def tried(self) -> dict[tuple[str, int], Tried]:
        """The stored attempts that did not succeed, by job and version at the claim."""
        return {(tried.job, tried.fence): tried for tried in self.tables.tried}

    @cached_property
    def lives(self) -> dict[str, Life]:
        return {life.session: life for life in self.tables.lives}

    @cached_property
    def _died(self) -> dict[int, list[Death]]:
        """By process: one that was asked to stop may be killed a moment later."""
        found: defaultdict[int, list[Death]] = defaultdict(list)
        for death in self.deaths:
            found[death.pid].append(death)
        return dict(found)

    def ended(self, effect: Effect) -> float:
        """When an execution was over at the latest: its last line, or the end of its process."""
        if effect.end is not None:
            return effect.end
        deaths = self._died.get(effect.child or effect.pid) or self._died.get(effect.pid) or []
        forced = [death.at for death in deaths if death.forced]
        return min(forced or [death.at for death in deaths], default=NEVER)

    def killed(self, effect: Effect) -> bool:
        """Whether its process, or the worker's that it belongs to, was ended by us, by force, after it had begun."""
        found = [death for pid in (effect.child, effect.pid) for death in self._died.get(pid or 0, [])]
        return any(death.wanted and death.forced and death.at >= effect.start for death in found)

    def stopped(self, effect: Effect) -> bool:
        """Whether its process was asked to end, gracefully."""
        return any(death.wanted and not death.forced for death in self._died.get(effect.pid, []))

    def frozen(self, effect: Effect, tried: Tried) -> bool:
        """Whether its process stood still at some time between the claim and the loss that was recorded."""
        claimed = effect.start if tried.start is None else tried.start
        return any(
            freeze.pid == effect.pid and freeze.begin <= tried.end and freeze.end >= claimed
            for freeze in self.freezes
        )

    def cut_off(self, tried: Tried) -> bool:
        """Whether beats that would have prolonged the session of a lost attempt met an outage.

        A worker gives its session up when a lease has passed since the last beat
        that was answered. One more may still land in the store, unheard: so the
        outage may lie up to two leases before the end.
        """
        life = self.lives.get(tried.session or "")
        return life is not None and any(
            outage.begin <= life.lease_until and outage.end >= life.lease_until - 2 * self.lease
            for outage in self.outages
        )

    def lapsed(self, effect: Effect, at: float) -> bool:
        """Whether the lease that an execution ran under was past at a moment, by the store's clock."""
        tried = self.tried.get((effect.job, effect.fence))
        life = self.lives.get(tried.session or "") if tried else None
        return life is not None and life.lease_until <= at + 0.001  # one millisecond: two clock readings

    def history(self, key: str) -> list[str]:
        """Everything known of one job, in the order of time."""
        lines = [f"journal   {entry}" for entry in self.entries if entry.key == key]
        jobs = {row.job for row in self.rows.get(key, [])} | {e.job for e in self.effects if e.key == key}
        jobs |= {entry.job for entry in self.entries if entry.key == key and entry.job}
        told: list[tuple[float, str]] = []
        for effect in (effect for effect in self.effects if effect.job in jobs):
            told.append(
                (effect.start, f"start     {_place(effect)} fence {effect.fence} attempt {effect.attempt}")
            )
            if effect.end is not None:
                told.append((effect.end, f"end       {_place(effect)} fence {effect.fence} {effect.how}"))
        ours = [effect for effect in self.effects if effect.job in jobs]
        pids = {pid for effect in ours for pid in (effect.pid, effect.child)}
        told += [(d.at, f"death     pid {d.pid} code {d.code}") for d in self.deaths if d.pid in pids]
        told += [
            (f.begin, f"freeze    pid {f.pid} for {f.end - f.begin:.2f} s")
            for f in self.freezes
            if f.pid in pids
        ]
        for tried in (tried for tried in self.tables.tried if tried.job in jobs):
            told.append(
                (
                    tried.end,
                    f"attempt   {tried.attempt} fence {tried.fence} {tried.outcome}: {tried.error_class}",
                )
            )
            life = self.lives.get(tried.session or "")
            if life is not None:
                told.append(
                    (life.lease_until, f"lease     of fence {tried.fence} past (session {life.session})")
                )
        if any(tried.job in jobs and tried.error_class == "lost" for tried in self.tables.tried):
            told += [(o.begin, f"outage    for {o.end - o.begin:.2f} s") for o in self.outages]
        lines += [f"{at:.3f} {what}" for at, what in sorted(told)]
        return lines + [f"stored    {row}" for row in self.rows.get(key, [])]


def _place(effect: Effect) -> str:
    return f"pid {effect.pid}" if effect.child is None else f"pid {effect.pid} in its child {effect.child}"
