"""One scheduler process in moved time: `python -m chaos.ticker`. It looks, fires, and looks again until it is killed.

CHAOS_CLOCK names a file whose eight bytes are the time, which the test moves.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rota import Rota, every
from rota.config import Settings
from rota.errors import StoreError
from rota.stores.postgres import PostgresStore
from rota.worker.chores.scheduler import Scheduler
from rota.worker.opening import Opening

ZONE = "Europe/Berlin"
TIME = struct.Struct("d")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def declare(app: Rota) -> None:
    """What ticks in these tests; whatever was missed is made good, so that nothing may be missing in the end."""
    for name, when in (("nightly", "30 2 * * *"), ("dense", "*/5 1-3 * * *"), ("steady", every("10m"))):
        app.schedule(when, tz=ZONE, name=name, misfire="all", cap=1000)(app.task(name=name)(lambda: None))


class MovedClock:
    """The time that the test says it is."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._view = mmap.mmap(file.fileno(), TIME.size)

    def __call__(self) -> datetime:
        return EPOCH + timedelta(seconds=TIME.unpack(self._view[:])[0])

    def move(self, seconds: float) -> None:
        self._view[:] = TIME.pack(TIME.unpack(self._view[:])[0] + seconds)


def a_clock(path: Path, moment: datetime) -> MovedClock:
    path.write_bytes(TIME.pack(moment.timestamp()))
    return MovedClock(path)


async def main() -> None:
    store = PostgresStore(os.environ["ROTA_URL"], clock=MovedClock(Path(os.environ["CHAOS_CLOCK"])))
    app = Rota(store=store, settings=Settings.load())
    declare(app)
    await Opening(app).once()
    scheduler = Scheduler(store, None, tuple(app.schedules))
    print("ticking", flush=True)
    while True:
        try:
            await scheduler.look()
        except StoreError as error:  # its backend was taken away: the next look has another
            print(error, flush=True)
        await asyncio.sleep(0.002)


if __name__ == "__main__":
    asyncio.run(main())
