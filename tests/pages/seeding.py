"""A store with a day of a real business in it, for tests of the pages and for pictures of them.

All of it goes through the store's own verbs, with a clock that is moved through the last day: jobs are enqueued,
claimed and settled as workers do it, with the shop's own functions and their own errors. Nothing is random: the same
seed gives the same day.
"""

from __future__ import annotations

import json
import linecache
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

from rota import Rota
from rota._core.failure import Failure
from rota._core.job import Job, NewJob
from rota._core.numbers import LaneTotal
from rota._core.outcome import Outcome, Raised, Returned, Transition, decide
from rota.stores.contract import SessionStart, Wanted
from rota.stores.postgres import PostgresStore
from rota.worker.tally import Tally

SOURCE = Path(__file__).with_name("shop_jobs.py")
DEPLOYED_AT = "/srv/shop/jobs.py"
OLD, NEW = "2026.11.2", "2026.11.3"
TENANTS = ("acme-tools", "blue-bakery", "casa-verde", None)
PEOPLE = ("jana", "oluwaseun", "mei", "tomas", "priya", "lars", "ines", "noor", "finn", "aiko")
FAST, REST = ("payments", "mail"), ("invoices", "images", "exports", "imports", "search", "newsletter")
WORKED = FAST + REST[:-1]
LANES = {"fast": 6, "general": 10}
DAY, HOUR, MINUTE = 86_400.0, 3600.0, 60.0
NEWSLETTER = 25 * MINUTE
"""So long ago it was handed in; it goes out slowly."""
HALF_A_DAY = 12.0


class Kind(NamedTuple):
    """How one task behaves."""

    task: str
    share: float
    """Of all jobs."""
    takes: float
    """Seconds, usually."""


KINDS = (
    Kind("send_mail", 0.36, 0.35),
    Kind("make_thumbnail", 0.24, 0.9),
    Kind("index_product", 0.16, 0.06),
    Kind("render_invoice", 0.11, 2.4),
    Kind("charge_card", 0.10, 1.3),
    Kind("sync_stock", 0.02, 4.0),
    Kind("import_catalogue", 0.012, 21.0),
    Kind("export_orders", 0.003, 190.0),
)
TAKES = {kind.task: kind.takes for kind in KINDS}


def shop() -> ModuleType:
    """The shop's code, as it is where it is deployed: what its traces show is readable, and no path of this machine."""
    text = SOURCE.read_text()
    linecache.cache[DEPLOYED_AT] = (len(text), None, text.splitlines(keepends=True), DEPLOYED_AT)
    module = ModuleType("jobs")
    exec(compile(text, DEPLOYED_AT, "exec"), module.__dict__)
    return module


def shop_app(**options: Any) -> Rota:
    """The shop's app, for pages that are served: with its tasks and schedules."""
    code = shop()
    app = Rota(code_version=NEW, queues=code.QUEUES, **options)
    code.define(app)
    return app


class Clock:
    """Stands where it was put."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


class Day:
    """The last day of the shop."""

    def __init__(self, url: str, *, seed: int = 7) -> None:
        self.present = datetime.now(UTC)
        self.clock = Clock(self.present)
        self.store = PostgresStore(url, clock=self.clock)
        self.app = shop_app(store=self.store)
        self.specs = {name: task.spec() for name, task in self.app.tasks.items()}
        self.chance = random.Random(seed)
        self.sessions: list[UUID] = []
        self.order = 41_200

    # -- what a worker does ------------------------------------------------------------------

    def at(self, ago: float) -> None:
        """Put the clock so many seconds before now."""
        self.clock.now = self.present - timedelta(seconds=ago)

    def new_id(self, moment: datetime) -> UUID:
        milliseconds = int(moment.timestamp() * 1000)
        return UUID(
            int=milliseconds << 80
            | 7 << 76
            | self.chance.getrandbits(12) << 64
            | 2 << 62
            | self.chance.getrandbits(62)
        )

    def job(self, task: str, *, waited: float = 0.0, **options: Any) -> NewJob:
        """A new job of the shop, as its own code would enqueue it."""
        spec = self.specs[task]
        self.order += self.chance.randrange(1, 4)
        chosen: dict[str, Any] = {
            "payload_json": json.dumps(options.pop("args", None) or self.arguments(task)),
            "queue": spec.queue,
            "priority": spec.priority,
            "max_attempts": spec.retry.attempts,
            "tenant": self.chance.choice(TENANTS),
            "subject": f"order:{self.order}"
            if task in ("render_invoice", "charge_card", "send_mail")
            else None,
            "tags": ("vip",) if self.chance.random() < 0.08 else (),
            "created_by": "checkout" if task in ("render_invoice", "charge_card") else None,
            "category": spec.category,
            "payload_version": spec.payload_version,
            "run_at": self.clock() - timedelta(seconds=waited) if waited else None,
        }
        return NewJob(id=self.new_id(self.clock()), task=task, **(chosen | options))

    def arguments(self, task: str) -> dict[str, Any]:
        pick, order = self.chance.random(), self.order
        who = self.chance.choice(PEOPLE)
        host = "full.example" if pick < 0.008 else "slow.example" if pick < 0.02 else "mail.example"
        customer = f"guest-{order % 97}" if pick < 0.012 else f"c-{1000 + order % 60}"
        match task:
            case "send_mail":
                template = self.chance.choice(("order-shipped", "invoice-ready", "welcome", "password-reset"))
                return {"to": f"{who}@{host}", "template": template, "order": order}
            case "make_thumbnail":
                ending = "heic" if pick < 0.02 else "jpg"
                return {
                    "photo": f"uploads/{who}/{order}.{ending}",
                    "width": self.chance.choice((160, 320, 640)),
                }
            case "index_product":
                return {"sku": f"poster-{order % 900:03}"}
            case "render_invoice":
                return {"order": order, "customer": customer, "currency": "EUR"}
            case "charge_card":
                amount = f"{self.chance.randrange(900, 24_000) / 100:.2f} EUR"
                return {"order": order, "customer": customer, "amount": amount, "card_token": "tok_4242"}
            case "sync_stock":
                return {"warehouse": self.chance.choice(("hamburg", "lyon", "gdansk", "porto", "lisbon"))}
            case "import_catalogue":
                supplier = "oldpress" if pick < 0.2 else "inkhaus" if pick < 0.6 else "paperworks"
                return {"supplier": supplier, "url": f"https://{supplier}.example/prices.xml"}
            case "export_orders":
                return {"month": f"2026-{1 + order % 10:02}", "file_type": "csv"}
            case _:
                return {}

    def end(self, job: Job) -> Transition:
        """Run the shop's function for a job, and decide as a worker does."""
        task = self.app.tasks[job.task]
        outcome: Outcome
        try:
            result = task.fn(**job.payload)
            partial = isinstance(result, dict) and "skipped" in result
            outcome = Returned(None if result is None else json.dumps(result), partial=partial)
        except Exception as error:
            trace = error.__traceback__
            error.__traceback__ = None if trace is None else trace.tb_next  # not our own frame
            outcome = Raised(Failure.of(error, task.retry.class_of(error)))
        return decide(job, outcome, retry=task.retry, now=self.clock())

    async def claim(self, wanted: Wanted, session: UUID) -> list[Job]:
        """All that is due, by one session."""
        await self.store.next_due()
        found = list(await self.store.claim(wanted, session=session))
        return found + list(
            await self.store.claim(wanted._replace(limit=wanted.limit - len(found)), session=session)
        )

    async def stretch(self, new: int, room: float, *, slow: float = 1.0) -> None:
        """Some work arrives, is taken, and ends."""
        begun = self.clock()
        kinds = self.chance.choices(KINDS, [kind.share for kind in KINDS], k=new)
        waits = [self.chance.expovariate(2.0) * slow for _ in kinds]
        jobs = [self.job(kind.task, waited=wait) for kind, wait in zip(kinds, waits, strict=True)]
        if jobs:
            await self.store.enqueue(jobs)
        await self.store.note_depths()
        await self.store.note_room()
        session, tally = self.chance.choice(self.sessions), Tally()
        while True:
            await self.work(session, tally, slow)
            pause = await self.store.next_due(WORKED)
            if pause is None or self.clock() + timedelta(seconds=pause + 8) > begun + timedelta(seconds=room):
                break
            self.clock.now += timedelta(seconds=max(pause, 6.0) + 0.3)  # what is tried again is taken soon
        busy = min(1.0, 0.05 + new * 4 / room * slow**0.2)
        lanes = tuple(LaneTotal(name, slots * 12, int(slots * 12 * busy)) for name, slots in LANES.items())
        minutes = [minute._replace(lanes=lanes) for minute, _ in tally.unwritten(self.clock())]
        await self.store.note_minutes(session, minutes)

    async def work(self, session: UUID, tally: Tally, slow: float) -> None:
        """Take what is due, and end each after its own time."""
        begun = self.clock()
        claimed = await self.claim(Wanted(limit=400, queues=WORKED), session)
        lengths = {
            job.id: TAKES[job.task] * self.chance.lognormvariate(0.0, 0.5) * slow**0.3 for job in claimed
        }
        claimed.sort(key=lambda job: lengths[job.id])
        for some in _parts(claimed, 3):
            self.clock.now = begun + timedelta(seconds=lengths[some[-1].id])
            ends = [self.end(job) for job in some]
            await self.store.settle(ends)
            tally.lost(ends, self.clock())

    async def newsletter(self, ago: float) -> None:
        """Many copies at once, of which four a minute become due."""
        if ago + MINUTE >= NEWSLETTER:
            args = [{"to": f"reader{number}@mail.example", "issue": "2026-46"} for number in range(260)]
            begin, tags = self.clock(), ("newsletter",)
            copies = [
                self.job(
                    "send_newsletter", args=each, tags=tags, run_at=begin + timedelta(minutes=number // 4)
                )
                for number, each in enumerate(args)
            ]
            await self.store.enqueue(copies)
        tally, session = Tally(), self.sessions[0]
        self.clock.now += timedelta(seconds=1)
        ends = [self.end(job) for job in await self.claim(Wanted(limit=4, queues=("newsletter",)), session)]
        self.clock.now += timedelta(seconds=0.6)
        await self.store.settle(ends)
        tally.lost(ends, self.clock())
        await self.store.note_minutes(session, [minute for minute, _ in tally.unwritten(self.clock())])

    async def open_sessions(self, version: str, hosts: Iterable[str]) -> None:
        for session in self.sessions:
            await self.store.end_session(session)
        self.sessions = [self.new_id(self.clock()) for _ in hosts]
        for session, host in zip(self.sessions, hosts, strict=True):
            start = SessionStart(
                session,
                host,
                self.chance.randrange(800, 4000),
                LANES,
                tuple(self.app.tasks),
                version,
                "shop",
                {"fast": FAST, "general": REST},
                memory=(96 + 61 * self.sessions.index(session)) << 20,
                hears=True,
            )
            await self.store.open_session(start, lease=3 * DAY)

    # -- the day -----------------------------------------------------------------------------

    async def publish(self) -> None:
        """What the workers' code says of itself."""
        await self.store.publish([task.spec()._replace(code_version=NEW) for task in self.app.tasks.values()])
        await self.store.publish_schedules([schedule.spec() for schedule in self.app.schedules.values()])
        await self.store.publish_queues(list(self.app.queues.values()))

    async def history(self) -> None:
        """From a day ago until a minute ago: quiet nights, busy noons, a slow hour, a deploy."""
        self.at(DAY + HOUR)
        await self.publish()
        await self.open_sessions(OLD, ("worker-1", "worker-2"))
        ago = DAY
        while ago > MINUTE:
            self.at(ago)
            if len(self.sessions) == 2 and ago < 5 * HOUR:
                await self.open_sessions(NEW, ("worker-1", "worker-2", "worker-3"))
            slow = 40.0 if 6.5 * HOUR < ago < 7.5 * HOUR else 4.0 if 0.3 * HOUR < ago < 0.5 * HOUR else 1.0
            hour = self.clock().hour
            noon = 1.0 - abs(hour - HALF_A_DAY) / HALF_A_DAY
            recent = ago <= HOUR
            many = (8 if recent else 45) * (0.4 + noon) * self.chance.uniform(0.6, 1.4)
            room = MINUTE if recent else 15 * MINUTE
            if ago < NEWSLETTER:
                await self.newsletter(ago)
            await self.stretch(int(many), room, slow=slow)
            ago -= room


def _parts(jobs: Sequence[Job], count: int) -> list[Sequence[Job]]:
    size = max(1, -(-len(jobs) // count))
    return [jobs[start : start + size] for start in range(0, len(jobs), size)]


async def seed(url: str) -> None:
    """Fill a migrated, empty database."""
    from seeding_present import present

    day = Day(url)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SELECT rota.open_days(%s)", [day.present - timedelta(days=1)])
        await day.history()
        await present(day)
    finally:
        await day.store.close()
    freshen(url)


def freshen(url: str) -> None:
    """Let the workers live and the schedules tick, however long ago they were seeded."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "UPDATE rota.sessions SET lease_until = now() + interval '1 hour' WHERE ended_at IS NULL"
        )
        connection.execute("UPDATE rota.schedules SET cursor_at = now(), seen_at = now()")
        connection.execute("ANALYZE")
