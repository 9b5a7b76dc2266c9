"""Lanes: reserved slots and the queues they serve, so that slow work never blocks fast work."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rota.errors import ConfigError

if TYPE_CHECKING:
    from rota.worker.execution import Run

EVERY_QUEUE = "general"
"""The lane that serves every queue unless it is told otherwise. Any other lane serves the queue of its own name."""


SHARED_FROM = 40
"""With fewer slots a round trip costs more than fetching and running at the same time would gain."""
PACE_SECONDS = 0.005
"""How long ends are counted for a pace: a few round trips."""
AHEAD = 200
"""At most so many jobs are claimed beyond the free slots."""


class LaneSpec(NamedTuple):
    """A lane as it is configured."""

    name: str
    slots: int
    queues: tuple[str, ...] | None
    """None: every queue."""


Lanes: TypeAlias = "Mapping[str, int | str | LaneSpec]"


def parse_lane(text: str) -> LaneSpec:
    """Read a lane as the command line writes it: `fast=3`, `reports=2:reports,exports`, `spare=4:*`."""
    name, equals, rest = text.partition("=")
    if not equals or not name.strip():
        raise _misread(text)
    return _spec(name.strip(), rest.strip())


def lane_specs(lanes: Lanes, *, queues: Iterable[str] | None = None) -> list[LaneSpec]:
    """Read the lanes of a mapping such as `{"fast": 3, "general": 5, "reports": "2:reports,exports"}`.

    `queues` narrows the lanes that would serve every queue.
    """
    if not lanes:
        raise ConfigError(
            'a worker needs at least one lane. Give it one, such as {"general": 5}, or leave lanes out.'
        )
    only = None if queues is None else tuple(queues)
    if only is not None and not only:
        raise ConfigError(
            "queues is empty, so this worker would never find work. Name a queue, or leave queues out."
        )
    specs = [given if isinstance(given, LaneSpec) else _spec(name, given) for name, given in lanes.items()]
    return [spec if spec.queues is not None else spec._replace(queues=only) for spec in specs]


def _spec(name: str, given: int | str) -> LaneSpec:
    text = str(given)
    number, colon, listed = text.partition(":")
    if not number.strip().isdigit():
        raise _misread(f"{name}={text}")
    slots = int(number)
    if not 1 <= slots <= 10_000:
        raise ConfigError(
            f"lane {name!r} has {slots} slots; give it at least 1 and at most 10000, or leave the lane out."
        )
    if not colon:
        return LaneSpec(name, slots, None if name == EVERY_QUEUE else (name,))
    queues = tuple(queue.strip() for queue in listed.split(",") if queue.strip())
    if not queues:
        raise _misread(f"{name}={text}")
    return LaneSpec(name, slots, None if "*" in queues else queues)


def _misread(text: str) -> ConfigError:
    return ConfigError(
        f"lane {text!r} is not understood. Write name=slots, such as fast=3, "
        "or name=slots:queue,queue, such as reports=2:reports,exports (`*` means every queue)."
    )


class Lane:
    """A lane at work: how many of its slots are free, and how much to ask for.

    Never more handlers run at once than there are slots. But jobs that are over
    in a moment are asked for *ahead*: as many as will have ended by the time the
    answer is here, reckoned from how many ended of late. What finds no slot soon
    after all goes back to the store (see `Runner`).
    """

    __slots__ = (
        "_ended_then", "_pace", "_then", "ahead", "asking", "dry", "ended", "flowing", "free", "hints", "name",
        "queues", "seated", "slots", "waiting",
    )  # fmt: skip

    def __init__(self, spec: LaneSpec) -> None:
        self.name, self.slots, self.queues = spec
        self.free = self.slots
        """Slots without a job; below zero by as many jobs as were claimed ahead."""
        self.seated = 0
        """Handlers that run and take their time. One that ends at once never sits down."""
        self.waiting: deque[Run] = deque()
        """Jobs that were claimed ahead and found every slot taken after all."""
        self.ended = 0
        self.ahead = 0
        self.asking = 0
        """Claims on their way for this lane."""
        self.flowing = False
        """The last claim came back full, so there is more: both exchanges may ask."""
        self.dry = False
        """The last claim came back short: wait for a hint or the next poll."""
        self.hints = 0
        self._ended_then, self._then, self._pace = 0, 0.0, 0.0

    @property
    def hungry(self) -> bool:
        room = self.free + self.ahead
        if self.asking:
            return self.flowing and not self.dry and 4 * room > self.slots + self.ahead
        return room > 0 and not self.dry

    @property
    def may_ask(self) -> bool:
        """Whether a claim that costs nothing extra (it rides along with a settle) is worth it."""
        return self.free > 0 and self.asking == 0

    def serves(self, queue: str) -> bool:
        return self.queues is None or queue in self.queues

    def wake(self) -> None:
        """There may be work: ask again."""
        self.hints += 1
        self.dry = False

    def reserve(self) -> int:
        """Set slots aside for one claim: of many at most half, so that one half runs while the other is fetched."""
        room = self.slots + self.ahead
        asked = min(self.free + self.ahead, room if room < SHARED_FROM else (room + 1) // 2)
        self.free -= asked
        self.asking += 1
        return asked

    def answered(self, asked: int, got: int, hints: int, *, now: float = 0.0, took: float = 0.0) -> None:
        """A claim came back at `now`. `hints` is the count when it was sent: a hint since may tell of later work."""
        self.asking -= 1
        self.free += asked - got
        self.flowing = got == asked
        self.dry = not self.flowing and self.hints == hints
        if not self.flowing:
            self.ahead = 0
        elif now - self._then >= PACE_SECONDS:
            # The slower of two paces, so that jobs which get longer are not asked for ahead; and as many as two round
            # trips need, because one half is on its way while the other runs.
            before, self._pace = self._pace, (self.ended - self._ended_then) / (now - self._then)
            self._ended_then, self._then = self.ended, now
            self.ahead = min(AHEAD, int(2 * min(before, self._pace) * took))

    def unanswered(self, asked: int) -> None:
        """A claim failed; what it may have got is found by the heartbeat."""
        self.asking -= 1
        self.free += asked
        self.ahead = 0
