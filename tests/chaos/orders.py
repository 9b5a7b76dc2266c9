"""What a producer is told. Apart from the producer, because tests must not import the app that it runs."""

from __future__ import annotations

from typing import NamedTuple


class Order(NamedTuple):
    """What a producer is told to do."""

    name: str
    """Unique among the producers of a run: keys begin with it."""
    mode: str
    """single, together, bulk, keyed, delayed or newcomers."""
    count: int
    ms: int = 5
    """About how long each job takes."""
    batch: int = 20
    """Jobs in one go, where the mode has goes."""
    mix: bool = False
    """Whether some jobs run in threads, fail at first, or stand in line."""
    pad: int = 0
    """So many bytes of noise travel with each job, where the mode is keyed."""
    tenant: str | None = None
    pause: float = 0.0
    """Seconds between two goes."""
    seed: int = 0
    patience: float = 60.0
    """Seconds that a keyed enqueue is repeated before the producer gives up."""
