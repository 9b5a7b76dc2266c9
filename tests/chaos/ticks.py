"""Two schedulers that are killed again and again while time flies and the clocks change.

`python -m chaos.ticks URL HOME SEED spring|autumn long|short` prints what came of one run as JSON; figure G12 of
docs/reliability.md is made of two.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import psycopg

from chaos.calendar import Due, Fired
from chaos.checker import Violation, schedules
from chaos.evidence import Evidence
from chaos.facts import read_tables
from chaos.fleet import environment
from chaos.nemesis import BACKENDS
from chaos.ticker import ZONE, MovedClock, a_clock, declare
from rota import Rota
from rota.config import Settings
from rota.stores.postgres import PostgresStore
from rota.worker.opening import Opening

BERLIN = ZoneInfo(ZONE)
LEAD = timedelta(days=3)
"""Time waits for schedulers that are further behind: ticks beyond the cap of a schedule are left out by its policy."""
PATIENCE = 120.0
"""Seconds that they have to come after."""
SHORT = {
    "spring": (datetime(2026, 3, 27, 12, tzinfo=UTC), datetime(2026, 3, 30, 12, tzinfo=UTC)),
    "autumn": (datetime(2026, 10, 23, 12, tzinfo=UTC), datetime(2026, 10, 26, 12, tzinfo=UTC)),
}
HALVES = {
    "spring": (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)),
    "autumn": (datetime(2026, 7, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)),
}


class Schedulers:
    """Two scheduler processes; whoever ends is replaced."""

    def __init__(self, url: str, home: Path, dice: random.Random) -> None:
        self._url, self._home, self._dice = url, home, dice
        self.kills = 0
        self._places = [self._spawn() for _ in range(2)]

    def _spawn(self) -> subprocess.Popen[bytes]:
        with (self._home / "ticker.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "chaos.ticker"],
                cwd=self._home,
                env=environment(ROTA_URL=self._url, CHAOS_CLOCK=str(self._home / "clock")),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def keep(self) -> None:
        """Replace what has ended; nobody may end by himself."""
        for number, place in enumerate(self._places):
            if place.poll() is not None:
                assert place.returncode == -signal.SIGKILL, (self._home / "ticker.log").read_text()
                self._places[number] = self._spawn()

    def begun(self) -> None:
        """Wait until both tick."""
        deadline = time.monotonic() + 60
        while (self._home / "ticker.log").read_text().count("ticking") < 2:
            assert time.monotonic() < deadline, (self._home / "ticker.log").read_text()
            time.sleep(0.02)

    def kill_one(self) -> None:
        self._dice.choice(self._places).kill()
        self.kills += 1

    def freeze_one(self, seconds: float) -> None:
        place = self._dice.choice(self._places)
        place.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        place.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        for place in self._places:
            place.kill()
            place.wait()


@contextmanager
def schedulers(url: str, home: Path, dice: random.Random) -> Iterator[Schedulers]:
    both = Schedulers(url, home, dice)
    try:
        yield both
    finally:
        both.stop()


def cut_a_backend(connection: psycopg.Connection, dice: random.Random) -> None:
    pids = [pid for (pid,) in connection.execute(BACKENDS)]
    if pids:
        connection.execute("SELECT pg_terminate_backend(%s)", [dice.choice(pids)])


def publish(url: str, clock: MovedClock) -> None:
    """Make the schedules known at the beginning of time, before anybody ticks."""

    async def run() -> None:
        store = PostgresStore(url, clock=clock)
        app = Rota(store=store, settings=Settings.load(url="memory://"))
        declare(app)
        await Opening(app).step()
        await store.close()

    asyncio.run(run())


def wanted(begin: datetime, end: datetime) -> dict[str, set[datetime]]:
    """Every tick there should be, worked out by hand: day by day, on the clock of the wall."""
    days = [begin.date() + timedelta(days=n) for n in range(-1, (end - begin).days + 2)]
    dense = [clock_time(hour, minute) for hour in (1, 2, 3) for minute in range(0, 60, 5)]
    steady = {
        begin + timedelta(minutes=10 * n) for n in range(1, int((end - begin) / timedelta(minutes=10)) + 1)
    }
    return {
        "nightly": {tick for day in days if begin < (tick := on_the_wall(day, clock_time(2, 30))) <= end},
        "dense": {tick for day in days for at in dense if begin < (tick := on_the_wall(day, at)) <= end},
        "steady": steady,
    }


def on_the_wall(day: date, at: clock_time) -> datetime:
    """This local time as a moment: the first of two, and for one that is left out the end of the gap."""
    local = datetime.combine(day, at, tzinfo=BERLIN)
    while local.astimezone(UTC).astimezone(BERLIN).replace(tzinfo=None) != local.replace(tzinfo=None):
        local += timedelta(minutes=1)
    return local.astimezone(UTC)


def cursors(connection: psycopg.Connection) -> dict[str, datetime]:
    """Up to where the ticks of each schedule are decided."""
    return dict(connection.execute("SELECT name, cursor_at FROM rota.schedules").fetchall())


def caught_up(connection: psycopg.Connection, ticks: dict[str, set[datetime]]) -> bool:
    found = cursors(connection)
    return all(found[name] >= max(mine) for name, mine in ticks.items())


def wait_for(both: Schedulers, home: Path, there: Callable[[], bool]) -> None:
    """Until the schedulers are there; whoever was killed is replaced meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while not there():
        both.keep()
        assert time.monotonic() < deadline, (home / "ticker.log").read_text()[-4000:]
        time.sleep(0.05)


class Flown(NamedTuple):
    """What came of one run."""

    due: list[Due]
    fired: list[Fired]
    kills: int
    violations: list[Violation]

    @property
    def double(self) -> int:
        """Jobs too many."""
        return len(self.fired) - len({(one.schedule, one.tick) for one in self.fired})

    @property
    def missed(self) -> int:
        """Ticks without a job."""
        return len(set(self.due) - {(one.schedule, one.tick) for one in self.fired})


def fly(url: str, home: Path, *, seed: int, half: str, long: bool) -> Flown:
    """Let time fly through half a year, or the days around its change of the clocks, and hurt the schedulers."""
    begin, end = (HALVES if long else SHORT)[half]
    dice = random.Random(f"{seed} {half}")
    clock = a_clock(home / "clock", begin)
    publish(url, clock)
    ticks = wanted(begin, end)
    with (
        schedulers(url, home, dice) as both,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        both.begun()
        harms = [
            *[both.kill_one] * 4,
            lambda: cut_a_backend(connection, dice),
            lambda: both.freeze_one(dice.uniform(0.0, 0.3)),
        ]
        until_harm = 20
        while clock() < end:
            clock.move(min(dice.uniform(60, 7200 if long else 1200), (end - clock()).total_seconds()))
            time.sleep(0.015)
            both.keep()
            wait_for(both, home, lambda: clock() - min(cursors(connection).values()) < LEAD)
            until_harm -= 1
            if until_harm == 0:
                dice.choice(harms)()
                until_harm = dice.randrange(10, 80)
        wait_for(both, home, lambda: caught_up(connection, ticks))
        kills = both.kills
    due = [(name, tick) for name, mine in ticks.items() for tick in mine]
    seen = Evidence([], [], read_tables(url), due=due)
    return Flown(due, seen.tables.fired, kills, list(schedules(seen)))


def main() -> None:
    """One run, told in numbers."""
    url, home, seed, half, how = sys.argv[1:]
    flown = fly(url, Path(home), seed=int(seed), half=half, long=how == "long")
    numbers = {"ticks": len(flown.due), "kills": flown.kills, "double": flown.double, "missed": flown.missed}
    print(json.dumps(numbers | {"violations": len(flown.violations)}))


if __name__ == "__main__":
    main()
