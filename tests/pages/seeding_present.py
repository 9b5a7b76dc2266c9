"""The shop as it is now: what runs, waits, failed, was set aside, and what people did about it."""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

import psycopg
from seeding import NEW, WORKED, Day

from rota._core.dead_letter import DeadFilter
from rota._core.job import Job, NewJob, State
from rota._core.job_filter import JobFilter
from rota._core.job_log import LogTail, kept_line
from rota._core.outcome import Parked, decide
from rota._core.retention import Policy
from rota._core.review import ReviewVerb
from rota._core.suspects import Crash
from rota._core.token import Role
from rota.admin import Admin
from rota.stores.contract import Wanted

RUNNING = (
    (840, "export_orders"),
    (312, "import_catalogue"),
    (95, "export_orders"),
    (21, "render_invoice"),
    (9, "make_thumbnail"),
    (6, "charge_card"),
    (4, "make_thumbnail"),
    (2, "send_mail"),
    (1, "send_mail"),
)
EXPORT_SAYS = (
    (logging.INFO, "reading orders of 2026-10 from the replica"),
    (logging.INFO, "12,000 of 48,211 rows written"),
    (logging.WARNING, "order 40177 has no customer; exported as guest"),
    (logging.INFO, "24,000 of 48,211 rows written"),
)


async def present(day: Day) -> None:
    """Everything that is not over."""
    await reviews(day)
    await doomed(day)
    await family(day)
    await late_retries(day)
    await running(day)
    await backlog(day)
    await parked_task(day)
    await held(day)
    await ticks(day)
    day.at(0)
    await day.store.note_depths()
    await day.store.note_room()


async def family(day: Day) -> None:
    """An order: its charge started the invoice and the mail."""
    day.at(190)
    args = {"order": 41_998, "customer": "c-1002", "amount": "74.90 EUR", "card_token": "tok_4242"}
    common = {"subject": "order:41998", "tenant": "blue-bakery", "tags": ("vip",), "created_by": "checkout"}
    charge = day.job("charge_card", args=args, external_id="cart-7f3a", key="charge:41998", **common)
    await day.store.enqueue([charge])
    await one_round(day, 188)
    common |= {"parent_id": charge.id, "correlation_id": str(charge.id)}
    invoice = day.job("render_invoice", args={"order": 41_998, "customer": "c-1002"}, **common)
    mail = {"to": "ines@mail.example", "template": "invoice-ready", "order": 41_998}
    await day.store.enqueue([invoice, day.job("send_mail", args=mail, delay=3600.0, **common)])
    await one_round(day, 184)


async def doomed(day: Day) -> None:
    """Payments that were tried until no attempt was left."""
    day.at(1400)
    args = {"customer": "c-1017", "amount": "412.00 EUR", "card_token": "tok_0017"}
    numbers = (41_899, 41_900)
    await day.store.enqueue([day.job("charge_card", args={"order": number, **args}) for number in numbers])
    for ago in (1399, 1370, 1320, 1230, 1100):
        day.at(ago + 2)
        await one_round(day, ago)


async def one_round(day: Day, ago: float) -> None:
    """A worker takes what is due, and ends it."""
    jobs = await day.claim(Wanted(limit=400, queues=WORKED), day.sessions[0])
    day.at(ago)
    await day.store.settle([day.end(job) for job in jobs])


async def running(day: Day) -> None:
    """Jobs that workers have at this moment, some of them with a log."""
    for number, (ago, task) in enumerate(RUNNING):
        day.at(ago + 1)
        session = day.sessions[number % len(day.sessions)]
        args = {"order": 41_999, "customer": "c-1001", "amount": "129.00 EUR", "card_token": "tok_4242"}
        gated = {"args": args, "gate": "charge_card::c-1001"} if task == "charge_card" else {}
        await day.store.enqueue([day.job(task, **gated)])
        day.at(ago)
        for job in await day.claim(Wanted(limit=1, tasks=(task,)), session):
            if task == "export_orders":
                await says(day, job)


async def says(day: Day, job: Job) -> None:
    began = day.clock()
    lines = tuple(
        kept_line(began + timedelta(seconds=19 * step), level, text)
        for step, (level, text) in enumerate(EXPORT_SAYS)
    )
    await day.store.keep_logs([LogTail(job.id, job.version, job.attempt, lines, len(lines))])


async def backlog(day: Day) -> None:
    """What waits: pictures behind their target, mail, things for later, and a queue nobody serves."""
    day.at(600)
    await day.store.enqueue([day.job("send_mail", queue="fax") for _ in range(3)])
    day.at(130)
    await day.store.enqueue([day.job("make_thumbnail") for _ in range(34)])
    for ago in (40, 12, 5, 3, 1):
        day.at(ago)
        await day.store.enqueue([day.job(task) for task in ("send_mail", "index_product", "render_invoice")])
    day.at(5)
    waiting: list[NewJob] = []
    for hours in (0.2, 0.5, 1, 3, 9, 26, 50, 75):
        later = day.clock() + timedelta(hours=hours)
        waiting.append(day.job("send_mail", run_at=later, tags=("reminder",)))
    same = {"customer": "c-1001", "amount": "12.00 EUR", "card_token": "tok_4242"}
    waiting += [
        day.job("charge_card", args={"order": 42_000 + n, **same}, gate="charge_card::c-1001")
        for n in range(2)
    ]
    await day.store.enqueue(waiting)
    # The second charge of a customer waits for the first; whoever tries to take it notes that.
    await day.claim(Wanted(limit=4, tasks=("charge_card",)), day.sessions[2])


async def late_retries(day: Day) -> None:
    """Jobs that failed a moment ago and are tried again soon."""
    day.at(45)
    wanted = [
        day.job("sync_stock", args={"warehouse": "lisbon"}),
        *(
            day.job("send_mail", args={"to": f"{who}@slow.example", "template": "welcome"})
            for who in ("ada", "bo")
        ),
        day.job(
            "import_catalogue", args={"supplier": "oldpress", "url": "https://oldpress.example/prices.xml"}
        ),
        day.job(
            "charge_card",
            args={"order": 42_003, "customer": "c-1007", "amount": "8.50 EUR", "card_token": "tok_1"},
        ),
    ]
    await day.store.enqueue(wanted)
    for ago in (40, 3):
        day.at(ago + 1)
        await one_round(day, ago)


async def parked_task(day: Day) -> None:
    """A task that killed its processes, and what waits for its repair."""
    day.at(900)
    jobs = [day.job("render_preview", args={"design": f"calendar-{n}.pdf"}) for n in range(5)]
    await day.store.enqueue(jobs)
    claimed = await day.claim(Wanted(limit=5, tasks=("render_preview",)), day.sessions[1])
    for job in claimed[:3]:
        crash = Crash(
            "render_preview", NEW, job.id, job.version, "its process died: a segmentation fault", day.clock()
        )
        await day.store.note_crash(crash, limit=3, within=3600.0)
    task = day.app.tasks["render_preview"]
    why = Parked("task render_preview is parked: 3 of its jobs killed their process")
    await day.store.settle([decide(job, why, retry=task.retry, now=day.clock()) for job in claimed])


async def reviews(day: Day) -> None:
    """What operators did today about settings and dead letters."""
    store = day.store
    jana, mei = Admin(store, actor="jana@shop.example"), Admin(store, actor="mei@shop.example")
    day.at(5 * 3600)
    await jana.set_policy(
        Policy(90 * 86_400.0, state="completed", task="charge_card"), reason="auditors ask for a quarter"
    )
    await mei.create_token("grafana", role=Role.VIEWER)
    await mei.create_token("support desk", role=Role.OPERATOR, tenant="acme-tools", lasts=90 * 86_400.0)
    day.at(3 * 3600)
    letters = list(await store.dead_letters(DeadFilter(limit=200, until=day.clock())))
    by_task: dict[str, list[UUID]] = {}
    for letter in letters:
        by_task.setdefault(letter.job.task, []).append(letter.job.id)
    declined, broken = by_task.get("charge_card", []), by_task.get("make_thumbnail", [])
    for job_id in declined[:3]:
        await jana.acknowledge(job_id, reason="called the customer; pays by transfer")
    for job_id in broken[:2]:
        await mei.discard(job_id, reason="the photo was withdrawn")
    day.at(7000)
    finished = await jana.begin_operation(
        ReviewVerb.ACKNOWLEDGE, DeadFilter(task="make_thumbnail"), reason="HEIC: ticket SHOP-212"
    )
    await jana.drive(finished)
    day.at(2400)
    stopped = await mei.begin_operation(
        ReviewVerb.REPROCESS, DeadFilter(task="render_invoice"), reason="addresses were repaired", rate=2.0
    )
    await mei.stop_operation(stopped.id, reason="waiting for the fix in 2026.11.4")
    day.at(150)
    for job_id in by_task.get("send_mail", [])[:2]:
        await mei.reprocess(job_id, reason="wrote to the new address", edits={"to": "priya@mail.example"})
    await one_round(day, 148)
    await store.settle_reviews()


async def held(day: Day) -> None:
    """Jobs that people set aside, cancelled or asked to stop, and a schedule that they paused."""
    jana, mei = Admin(day.store, actor="jana@shop.example"), Admin(day.store, actor="mei@shop.example")
    day.at(300)
    wanted = JobFilter(states=(State.PENDING,), task="send_newsletter", limit=200)
    waiting = await jana.list(wanted)
    for job in waiting[:3]:
        await jana.hold(job.id, reason="typo in the headline; wait for the editor")
    for job in waiting[3:6]:
        await mei.cancel(job.id, reason="unsubscribed")
    day.at(60)
    [longest, *_] = [
        *await mei.list(JobFilter(states=(State.RUNNING,), task="import_catalogue", limit=1)),
        None,
    ]
    if longest is not None:
        await mei.cancel(longest.id, reason="the supplier is changing the file")
    day.at(20 * 60)
    await jana.pause_schedule("reindex", reason="search cluster is being upgraded")


async def ticks(day: Day) -> None:
    """What the schedules did in the last day: their ticks became the jobs of their tasks."""
    with psycopg.connect(day.store.url, autocommit=True) as connection:
        connection.execute(
            """
            INSERT INTO rota.schedule_ticks (schedule, tick, origin, outcome, job_id, at)
            SELECT given.name, tick, 'tick', CASE WHEN number % 17 = 5 THEN 'overlap' ELSE 'enqueued' END,
                   CASE WHEN number % 17 <> 5 THEN coalesce((
                       SELECT f.id FROM rota.all_jobs AS f
                       WHERE f.task = given.task AND f.created_at BETWEEN tick AND tick + given.step
                       ORDER BY f.created_at LIMIT 1), md5(number::text)::uuid) END,
                   tick + interval '1 second'
            FROM (VALUES ('stock', 'sync_stock', interval '5 minutes'),
                         ('catalogue', 'import_catalogue', interval '1 hour'),
                         ('nightly-export', 'export_orders', interval '1 day'),
                         ('newsletter', 'send_newsletter', interval '7 days')) AS given (name, task, step),
                 generate_series(1, 40) AS number,
                 LATERAL (SELECT date_bin(given.step, now(), '2026-01-05 01:30+00') - given.step * (number - 1))
                     AS at (tick)
            WHERE number % 23 <> 9
            """
        )
