"""Queue: what an app says of one of its queues besides its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rota._core.durations import Duration, seconds


@dataclass(frozen=True, slots=True)
class Queue:
    """What is expected of a queue: `Rota(queues=[Queue("mail", target="30s", max_pending=10_000)])`.

    `target` is how long a due job should wait at most. `max_pending` is how many
    jobs may wait; `on_full` says what an enqueue does that finds it full:
    "reject" raises QueueFull at once, "delay" waits for room, at most `delay`,
    and then raises it.
    """

    name: str
    target: Duration | None = None
    max_pending: int | None = None
    """Jobs that may wait in it; None: any number."""
    max_pending_per_tenant: int | None = None
    """Jobs of one tenant that may wait in it."""
    on_full: Literal["reject", "delay"] = "reject"
    delay: Duration = 30.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ValueError(f'Queue({self.name!r}): give the name of a queue, such as Queue("mail").')
        if self.target is not None:
            wait = seconds(self.target, f"the target of queue {self.name!r}")
            if wait <= 0:
                raise ValueError(
                    f"Queue({self.name!r}, target={self.target!r}): a target is longer than nothing."
                )
            object.__setattr__(self, "target", wait)
        for option in ("max_pending", "max_pending_per_tenant"):
            limit = getattr(self, option)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
                raise ValueError(
                    f"{option} of queue {self.name!r} is {limit!r}; give a whole number from 1 on, or leave it out."
                )
        if self.on_full not in ("reject", "delay"):
            raise ValueError(f"on_full of queue {self.name!r} is {self.on_full!r}; choose reject or delay.")
        object.__setattr__(self, "delay", seconds(self.delay, f"the delay of queue {self.name!r}"))

    @property
    def target_seconds(self) -> float | None:
        return None if self.target is None else seconds(self.target)

    @property
    def limited(self) -> bool:
        return self.max_pending is not None or self.max_pending_per_tenant is not None

    def overrun(self, waiting: Mapping[str | None, int], new: Mapping[str | None, int]) -> Overrun | None:
        """The limit that so many new jobs would break, by tenant, where so many wait already."""
        total = sum(waiting.values())
        if self.max_pending is not None and total + sum(new.values()) > self.max_pending:
            return Overrun(None, total, self.max_pending)
        if self.max_pending_per_tenant is not None:
            for tenant, jobs in new.items():
                if tenant is not None and waiting.get(tenant, 0) + jobs > self.max_pending_per_tenant:
                    return Overrun(tenant, waiting.get(tenant, 0), self.max_pending_per_tenant)
        return None


@dataclass(frozen=True, slots=True)
class Overrun:
    """A limit that is reached."""

    tenant: str | None
    """Whose; None: everybody's."""
    waiting: int
    limit: int
