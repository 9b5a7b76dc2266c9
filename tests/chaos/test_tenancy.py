"""I11: two tenants with a canary in every field, and everything that can be shown is asked for in the name of each."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from chaos.canaries import Shown, canary, silent
from chaos.checker import check
from chaos.evidence import Evidence
from chaos.facts import Tables
from rota import Retry, Rota, current_job
from rota._core.actions import AuditFilter
from rota._core.dead_letter import DeadFilter
from rota._core.review import Review, ReviewVerb
from rota.admin import Admin
from rota.cli.commands import Call
from rota.cli.main import run as run_command
from rota.config import Settings
from rota.contrib.prometheus import exposition
from rota.errors import JobNotFound
from rota.stores.contract import JobFilter
from rota.stores.postgres import PostgresStore
from rota.worker import Worker

TENANTS = ("red", "blue")
VIEWS = {
    "all_jobs": "SELECT * FROM rota.all_jobs WHERE tenant = %s",
    "queue_job": "SELECT * FROM rota_docverse.queue_job WHERE org_id = %s",
    "org_throughput": "SELECT * FROM rota_docverse.org_throughput WHERE org_id = %s",
}
OF_ALL = ("rota_lipas.job_queue_health", "rota_lipas.queue_stats", "rota_docverse.backlog_by_kind",
          "rota_docverse.recent_errors")  # fmt: skip


def an_app(store: PostgresStore) -> Rota:
    app = Rota(store=store, settings=Settings.load(url="memory://", poll=0.02, idle_poll=0.05))
    own = logging.getLogger("handlers")

    @app.task
    async def work(text: str) -> str:
        current_job().log.info("working on %s", text)
        own.warning("and again on %s", text)
        return text

    @app.task(retry=Retry(attempts=2, base=0.01))
    async def broken(text: str) -> None:
        current_job().log.error("no way with %s", text)
        raise ValueError(f"cannot do {text}")

    return app


def terms(word: str, number: int) -> dict[str, Any]:
    """A canary in every field that a user can fill."""
    return {
        "tenant": word, "subject": f"site:{word}", "key": f"{word}-{number}", "unique": f"{word}-{number}",
        "serial": f"{word}-{number}", "correlation_id": f"order-{word}", "tags": [word], "created_by": f"ann@{word}",
        "external_id": f"{word}-{number}",
    }  # fmt: skip


async def lived(store: PostgresStore) -> dict[str, list[UUID]]:
    """Work of both that completed, died, was done again, discarded, held: each with its trail."""
    app = an_app(store)
    work, broken = app.tasks["work"], app.tasks["broken"]
    jobs: dict[str, list[Any]] = {}
    for tenant in TENANTS:
        word = canary(tenant)
        mine = jobs[tenant] = [await work.using(**terms(word, 0)).enqueue(word)]
        mine += [await broken.using(**terms(word, number)).enqueue(word) for number in (1, 2, 3)]
        later = await work.using(delay="1h", **terms(word, 4)).enqueue(word)
        await Admin(store, actor=f"ann@{word}", tenant=word).hold(later.id, reason=f"because of {word}")
        mine.append(later)
    worker = Worker(app, lanes={"general": 4})
    working = asyncio.create_task(worker.run())
    for handle in [handle for mine in jobs.values() for handle in mine[:4]]:
        while not (await handle.status()).terminal:
            await asyncio.sleep(0.02)
    for tenant in TENANTS:
        word = canary(tenant)
        admin = Admin(store, actor=f"ann@{word}", tenant=word)
        again = await admin.reprocess(jobs[tenant][1].id, reason=f"once more for {word}")
        await admin.discard(jobs[tenant][2].id, reason=f"no more of {word}")
        one = DeadFilter(correlation_id=f"order-{word}")
        await admin.drive(await admin.begin_operation(ReviewVerb.ACKNOWLEDGE, one, reason=f"all of {word}"))
        jobs[tenant].append(app.job(again.new_job))
        while not (await jobs[tenant][-1].status()).terminal:
            await asyncio.sleep(0.02)
    worker.stop()
    await working
    return {tenant: [handle.id for handle in mine] for tenant, mine in jobs.items()}


async def asked(store: PostgresStore, tenant: str, jobs: dict[str, list[UUID]]) -> list[Shown]:
    """Everything that `rota.admin` shows a tenant."""
    admin = Admin(store, actor=f"ann@{canary(tenant)}", tenant=canary(tenant))
    found: list[Shown] = []

    def note(surface: str, answer: object) -> None:
        found.append(Shown(surface, tenant, repr(answer)))

    note("list", await admin.list(JobFilter()))
    note("list by task", await admin.list(JobFilter(task="broken", oldest_first=True)))
    for job_id in jobs[tenant]:
        note("show", await admin.show(job_id))
        note("explain", (await admin.explain(job_id), await admin.job(job_id)))
    note("logs", [await admin.logs(job_id) for job_id in jobs[tenant]])
    for letter in await admin.dead_letters(DeadFilter()):
        note("dead letter", letter)
        note("show_dead_letter", await admin.show_dead_letter(letter.job.id))
    for group in await admin.failures(DeadFilter(reviews=tuple(Review))):
        note("failure group", group)
        note("failure", await admin.failure(group.fingerprint))
    note("operations", await admin.operations())
    note("audit", await admin.trail(AuditFilter(limit=500)))
    note("tenants", await admin.tenants())
    others = [job_id for other, ids in jobs.items() if other != tenant for job_id in ids]
    for verb in (admin.show, admin.explain, admin.logs, admin.dead_letter, admin.retry, admin.discard):
        for job_id in others:
            with pytest.raises(JobNotFound) as refused:
                await verb(job_id)
            found.append(Shown(f"{verb.__name__} of another's", None, str(refused.value)))
    note("who works", (await admin.living(), await admin.tasks(), await admin.parked_tasks(), canary(tenant)))
    return found


def commanded(
    tenant: str, jobs: dict[str, list[UUID]], say: Callable[..., str], listed: list[UUID]
) -> Iterator[Shown]:
    """What the command line prints, with --tenant, and of a tenant's own jobs."""
    word = canary(tenant)
    for words in (("jobs", "list", "--tenant"), ("dlq", "list", "--review", "acknowledged", "--tenant")):
        yield Shown(" ".join(words), tenant, say(*words, word) + word)  # a table has no column for it
        yield Shown(" ".join(words), tenant, say(*words, word, "--json"))
    for job_id in jobs[tenant]:
        yield Shown("jobs show", tenant, say("jobs", "show", str(job_id)))
        yield Shown("jobs why", tenant, say("jobs", "why", str(job_id)) + word)
    yield Shown("jobs logs", tenant, say("jobs", "logs", str(jobs[tenant][0])))
    yield Shown("dlq show", tenant, say("dlq", "show", str(listed[0])))


@pytest.mark.chaos
@pytest.mark.timeout(120)
def test_no_tenant_is_shown_a_word_of_another(fresh_database, capsys, monkeypatch, tmp_path):
    async def story() -> tuple[dict[str, list[UUID]], list[Shown], str]:
        store = PostgresStore(fresh_database)
        jobs = await lived(store)
        shown = [one for tenant in TENANTS for one in await asked(store, tenant, jobs)]
        page, _ = exposition(await Admin(store, actor="metrics").overview())
        await store.close()
        return jobs, shown, page.decode()

    def say(*words: str) -> str:
        capsys.readouterr()
        assert run_command(Call(), list(words)) == 0, capsys.readouterr()
        return capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    jobs, shown, page = asyncio.run(story())
    shown.append(Shown("/metrics", None, page))
    with psycopg.connect(fresh_database) as connection:
        for tenant in TENANTS:
            for name, query in VIEWS.items():
                rows = connection.execute(query, [canary(tenant)]).fetchall()
                shown.append(Shown(f"view {name}", tenant, json.dumps(rows, default=str)))
        for name in OF_ALL:
            shown.append(Shown(name, None, repr(connection.execute(f"SELECT * FROM {name}").fetchall())))
    monkeypatch.setenv("ROTA_URL", fresh_database)
    for tenant in TENANTS:
        shown += commanded(tenant, jobs, say, jobs[tenant][1:])

    seen = Evidence([], [], Tables([], [], []), shown=shown, tenants=TENANTS)
    assert check(seen) == []
    assert silent(shown) == []
    assert len(shown) > 100
