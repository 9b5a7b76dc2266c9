"""Text of strangers stays text: a script in any stored string, or in any box of a page, runs nowhere."""

from __future__ import annotations

import json
from urllib.parse import quote

import psycopg
from playwright.async_api import Page

from build import a_job, claim, completed
from rota import Rota
from rota._core.actions import Audit
from rota._core.dead_letter import DeadFilter
from rota._core.failure import ErrorClass, Failure
from rota._core.job_log import LogLine, LogTail
from rota._core.outcome import Raised, decide
from rota._core.retention import Policy
from rota._core.retry import Retry
from rota._core.review import ReviewVerb
from rota._core.schedule import ScheduleSpec
from rota._core.suspects import Crash
from rota._core.task_spec import TaskSpec
from rota.admin import Admin
from rota.stores.contract import SessionStart
from rota.stores.postgres import PostgresStore
from rota.web.pages.job import TABS

CANARY = (
    "javascript:rotaCanary('{0}')//"
    "\"' onmouseover=\"rotaCanary('{0}')\" data-canary=\"<img src=x data-canary onerror=rotaCanary('{0}')>"
    "</script><script>rotaCanary('{0}')</script>{{{{7*7}}}}"
)
"""What text becomes more than text by: a link, the end of an attribute, an element, the end of a script, a template."""
ONE_OF_EACH = """
SELECT id FROM rota.all_jobs WHERE state IN ('held', 'running', 'dead', 'completed')
"""


class Strangers:
    """Puts a canary into every text that a store keeps."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store

    @staticmethod
    def text(place: str) -> str:
        return CANARY.format(place)

    async def write(self) -> None:
        text, store = self.text, self.store
        await store.publish(
            [TaskSpec("mail", queue=text("queue"), schema_json=json.dumps({"title": text("schema")}))]
        )
        marked = {
            "tenant": text("tenant"), "subject": text("subject"), "external_id": text("external"),
            "tags": (text("tag"), "plain"), "category": text("category"), "queue": text("queue"),
            "correlation_id": text("correlation"), "created_by": text("author"), "key": None,
        }  # fmt: skip
        waits, runs, dies, ends = (
            a_job("mail", {"to": text("payload"), text("field"): [text("item")]}, **marked) for _ in range(4)
        )
        tasks = ("mail", text("task"))
        lanes = {text("lane"): 5}
        session = SessionStart(runs.id, text("host"), 7, lanes, tasks, text("version"), text("account"))
        await store.open_session(session, lease=1e6)
        await store.enqueue([runs, dies, ends])
        jobs = {job.id: job for job in await claim(store, session.id)}
        now = await store.now()
        failure = Failure(
            ErrorClass.NON_RETRYABLE,
            text("type"),
            text("message"),
            f'File "{text("file")}", line 1, in {text("frame")}',
        )
        died = decide(jobs[dies.id], Raised(failure), retry=Retry(), now=now)
        await store.settle([died, completed(jobs[ends.id], {"answer": text("result"), text("key"): 1})])
        lines = (LogLine(now, "INFO", text("log")), LogLine(now, text("level"), "said"))
        await store.keep_logs([LogTail(runs.id, jobs[runs.id].version, 1, lines, 2, text("place"))])
        await store.enqueue([waits])
        await self.act(waits.id, runs.id, dies.id)

    async def act(self, waits, runs, dies) -> None:
        text, store = self.text, self.store
        somebody = Admin(store, actor=text("actor"))
        await somebody.hold(waits, reason=text("reason"))
        await somebody.cancel(runs, reason=text("reason"))
        await somebody.acknowledge(dies, reason=text("notes"))
        operation = await somebody.begin_operation(
            ReviewVerb.DISCARD, DeadFilter(tenant=text("tenant"), group=text("group")), reason=text("reason")
        )
        await somebody.stop_operation(operation.id, reason=text("reason"))
        schedule = ScheduleSpec(
            text("schedule"), "mail", json.dumps({"payload": {"to": text("payload")}}), "0 3 * * *"
        )
        await store.publish_schedules([schedule])
        await somebody.pause_schedule(schedule.name, reason=text("reason"))
        await somebody.create_token(text("token")[:100], tenant=text("tenant"), reason=text("reason"))
        await somebody.set_policy(
            Policy(9e9, state="completed", tenant=text("tenant")), reason=text("reason")
        )
        await store.note(Audit(text("actor"), text("action"), None, text("reason"), about=text("about")))
        await store.note_crash(Crash("mail", text("version"), runs, 2, text("crash")), limit=1, within=3600.0)


def addresses(url: str, strangers: Strangers) -> list[str]:
    """Every page that shows what strangers wrote, and every page asked for what they would write."""
    text = strangers.text
    filters = ["queue", "tenant", "tag", "subject", "error", "args.to", "worker", "task", ""]
    with psycopg.connect(url) as connection:
        jobs = [f"/jobs/{row[0]}" for row in connection.execute(ONE_OF_EACH)]
        [[worker]] = connection.execute("SELECT id FROM rota.sessions")
        [[group]] = connection.execute("SELECT fingerprint FROM rota.dead_jobs")
        [[operation]] = connection.execute("SELECT id FROM rota.operations")
    asked = [
        f"/jobs?filter={quote(f'{word}:' if word else '')}{quote(json.dumps(text('asked')))}"
        for word in filters
    ]
    odd = [
        f"{path}{quote(text('asked'), safe='')}"
        for path in ("/jobs/", "/queues/", "/tasks/", "/failures/", "/x/")
    ]
    return [
        "/", "/jobs", *(f"{job}?tab={tab}" for job in jobs for tab in TABS), *(f"{job}/edit" for job in jobs), *asked,
        "/failures", f"/failures/{group}", "/queues",
        f"/queues/{quote(text('queue'), safe='')}", "/tasks", "/tasks/mail", "/workers", f"/workers/{worker}",
        "/schedules", f"/schedules/{quote(text('schedule'), safe='')}", "/activity",
        f"/activity?actor={quote(text('actor'))}", f"/activity/operations/{operation}", "/system", *odd,
        f"/?range={quote(text('asked'))}", f"/jobs/all?verb=retry&filter={quote(json.dumps(text('asked')))}",
    ]  # fmt: skip


async def unharmed(page: Page) -> None:
    """Nothing of the canary became an element, and whatever can be pointed at was pointed at."""
    assert await page.locator("[data-canary]").count() == 0
    await page.evaluate(
        """for (const e of document.querySelectorAll('body *'))
            for (const kind of ['mouseover', 'mouseenter', 'focus'])
                e.dispatchEvent(new MouseEvent(kind, {bubbles: false}));"""
    )
    links = await page.evaluate("[...document.querySelectorAll('a[href]')].map(a => a.href.split(':')[0])")
    assert set(links) <= {"http", "https"}


async def test_what_strangers_wrote_runs_nowhere(fresh_database, serve, visit):
    store = PostgresStore(fresh_database)
    strangers = Strangers(store)
    await strangers.write()
    await store.close()
    server = await serve(Rota(fresh_database))
    mona = await visit(server)
    ran: list[str] = []
    await mona.context.expose_function("rotaCanary", lambda place: ran.append(place))
    mona.page.on("dialog", lambda dialog: ran.append(f"a dialog: {dialog.message}"))
    mona.guard.expect(
        "answer: 404", "status of 404", "answer: 422", "status of 422", "answer: 409", "status of 409"
    )
    shown = set()
    for path in addresses(fresh_database, strangers):
        answer = await mona.page.goto(server.base + path)
        assert answer is not None
        assert answer.status in (200, 404, 409, 422), f"{path}: {answer.status}"
        await unharmed(mona.page)
        said = await mona.page.content()
        shown |= {place for place in PLACES if f"rotaCanary('{place}')" in said.replace("&#39;", "'")}
        assert ran == [], f"{path}: {ran}"

    assert PLACES - shown == set()


PLACES = {
    "queue",
    "tenant",
    "subject",
    "tag",
    "payload",
    "message",
    "actor",
    "reason",
    "schedule",
    "host",
    "log",
    "result",
}
"""Where a canary must have been seen as text, so that the walk is known to have met it."""
