"""Every figure, in the order of its number."""

from __future__ import annotations

from reliability.figure import Figure
from reliability.figures import (
    commits,
    kills,
    network,
    outage,
    pending,
    poison,
    pooler,
    race,
    restart,
    snapshot,
    soak,
    stop,
    ticks,
    zombie,
)

MODULES = (
    kills,
    restart,
    stop,
    zombie,
    outage,
    commits,
    poison,
    network,
    pooler,
    ticks,
    snapshot,
    pending,
    race,
    soak,
)
FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in sorted((f for m in MODULES for f in m.FIGURES), key=lambda f: int(f.name[1:]))
}
