"""Everything that people ask a store, as the faces ask it, and how the server answers: its plans, read."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg.pq import TransactionStatus

from history import BUSY_TENANT, COMMON, QUIET_TENANT, RARE
from rota._core.actions import AuditFilter
from rota._core.dead_letter import DeadFilter
from rota._core.happening import HappeningFilter, Mark
from rota._core.job import State
from rota._core.job_filter import ArgumentIs
from rota._core.review import Review, ReviewVerb
from rota.admin import Admin
from rota.stores.contract import JobFilter
from rota.stores.postgres.prompt import PromptConnection

HOUR, DAY = 3600.0, 86_400.0
NOBODY = UUID(int=7 << 76)

Question = Callable[[Admin], Awaitable[Any]]

VIEWS = {
    "rota_lipas.job_queue_health": "SELECT * FROM rota_lipas.job_queue_health",
    "rota_lipas.queue_stats": "SELECT * FROM rota_lipas.queue_stats",
    "rota_lipas.stuck_jobs": "SELECT * FROM rota_lipas.stuck_jobs",
    "rota_lipas.recent_failures": "SELECT * FROM rota_lipas.recent_failures",
    "rota_lipas.payload_sizes": "SELECT * FROM rota_lipas.payload_sizes",
    "rota_lipas.dead_letter_jobs": "SELECT * FROM rota_lipas.dead_letter_jobs ORDER BY id DESC LIMIT 50",
    "rota_lipas.jobs": "SELECT * FROM rota_lipas.jobs ORDER BY id DESC LIMIT 50",
    "rota_lipas.job_metrics": "SELECT * FROM rota_lipas.job_metrics ORDER BY id DESC LIMIT 50",
    "rota_docverse.queue_job": "SELECT * FROM rota_docverse.queue_job ORDER BY id DESC LIMIT 50",
    "rota_docverse.backlog_by_kind": "SELECT * FROM rota_docverse.backlog_by_kind",
    "rota_docverse.active_work": "SELECT * FROM rota_docverse.active_work",
    "rota_docverse.slow_jobs": "SELECT * FROM rota_docverse.slow_jobs",
    "rota_docverse.recent_errors": "SELECT * FROM rota_docverse.recent_errors",
    "rota_docverse.org_throughput": "SELECT * FROM rota_docverse.org_throughput",
}


def questions(some: dict[str, UUID]) -> dict[str, Question]:
    """By name. `some` has the ids of a finished, a dead, a waiting and a gated job, and of a parent."""
    asked: dict[str, Question] = {}

    def listed(name: str, **fields: Any) -> None:
        asked[f"jobs list {name}"] = lambda admin: admin.list(JobFilter(**fields))

    listed("(all)")
    listed("(brief)", brief=True)
    listed("(brief) --task", brief=True, task=COMMON)
    listed("oldest first", oldest_first=True)
    listed("the next page", before=some["finished"])
    for state in State:
        listed(f"--state {state.value}", states=(state,))
    for name, fields in {
        "--task, common": {"task": COMMON}, "--task, rare": {"task": RARE}, "--task, none": {"task": "nothing"},
        "--queue, common": {"queue": "default"}, "--queue, none": {"queue": "nowhere"},
        "--tenant, busy": {"tenant": BUSY_TENANT}, "--tenant, quiet": {"tenant": QUIET_TENANT},
        "--tenant, none": {"tenant": "nobody"}, "--subject": {"subject": "site:42"},
        "--key": {"key": "key-done-1001"}, "--external-id": {"external_id": "ext-done-1007"},
        "--correlation": {"correlation_id": "flow-500"}, "--parent": {"parent_id": some["parent"]},
        "--tag, common": {"tag": "batch"}, "--tag, none": {"tag": "never"},
        "--tenant --task --state": {"tenant": BUSY_TENANT, "task": COMMON, "states": (State.COMPLETED,)},
        "--tenant --task --state, none": {"tenant": "tenant-7", "task": RARE, "states": (State.PARTIAL,)},
        "--queue --state": {"queue": "reports", "states": (State.PENDING,)},
        "--task --state dead": {"task": COMMON, "states": (State.DEAD,)},
        "args., common": {"args": (ArgumentIs(("to",), "user-7"),)},
        "args., none": {"args": (ArgumentIs(("user", "id"), "7"),)},
        "task: args.": {"task": RARE, "args": (ArgumentIs(("number",), "11"),)},
        "error:, a type": {"error": "TimeoutError"}, "error:, a class": {"error": "non_retryable"},
        "error:, none": {"error": "SmtpError"},
        "priority:, none": {"priority_to": 3}, "priority:, some": {"priority_from": 50, "priority_to": 50},
        "attempt>0": {"attempt_from": 1}, "attempt:, none": {"attempt_from": 30_000},
        "state:pending attempt>0": {"attempt_from": 1, "states": (State.PENDING,)},
        "worker:, none": {"worker": "nowhere"}, "worker:, ended": {"worker": "host-20"},
        "worker: state:running": {"worker": "host-1", "states": (State.RUNNING,)},
        "created>1h": {"created_from": datetime.now(UTC) - timedelta(hours=1)},
        "created<5d": {"created_until": datetime.now(UTC) - timedelta(days=5)},
        "created<40d": {"created_until": datetime.now(UTC) - timedelta(days=40)},
        "created:4d..3d": {"created_from": datetime.now(UTC) - timedelta(days=4),
                           "created_until": datetime.now(UTC) - timedelta(days=3)},
        "finished>1h": {"finished_from": datetime.now(UTC) - timedelta(hours=1)},
        "finished<5d": {"finished_until": datetime.now(UTC) - timedelta(days=5)},
        "order:priority": {"task": COMMON, "by_priority": True},
        "id:": {"ids": (some["finished"], some["dead"])},
    }.items():  # fmt: skip
        listed(name, **fields)
    for name in ("finished", "dead", "waiting"):
        asked[f"jobs show, {name}"] = lambda admin, name=name: admin.show(some[name])
    for name in ("finished", "dead", "waiting", "gated"):
        asked[f"jobs why, {name}"] = lambda admin, name=name: admin.explain(some[name])
    asked["jobs logs"] = lambda admin: admin.logs(some["dead"])

    def letters(name: str, **fields: Any) -> None:
        asked[f"dlq list {name}"] = lambda admin: admin.dead_letters(DeadFilter(**fields))
        asked[f"dlq count {name}"] = lambda admin: admin.match(ReviewVerb.ACKNOWLEDGE, DeadFilter(**fields))

    letters("(in review)", reviews=(Review.PENDING,))
    letters("--task", task=COMMON)
    letters("--task, none", task="nothing")
    letters("--tenant", tenant=BUSY_TENANT)
    letters("--tenant, quiet", tenant=QUIET_TENANT)
    letters("--queue", queue="reports")
    letters("--subject", subject="site:42")
    letters("--correlation", correlation_id="flow-500")
    letters("--class", error_class="non_retryable")
    asked["dlq list (all)"] = lambda admin: admin.dead_letters(DeadFilter())
    asked["dlq show"] = lambda admin: admin.show_dead_letter(some["dead"])
    asked["dlq operations"] = lambda admin: admin.operations()
    asked["failures list"] = lambda admin: admin.failures(DeadFilter())
    asked["failures list --all"] = lambda admin: admin.failures(DeadFilter(reviews=tuple(Review)))
    asked["failures list --task"] = lambda admin: admin.failures(DeadFilter(task=COMMON))

    async def one_group(admin: Admin) -> Any:
        [group, *_] = await admin.failures(DeadFilter(limit=1))
        return await admin.failure(group.fingerprint)

    asked["failures show"] = one_group

    async def by_hour(admin: Admin) -> Any:
        found = await admin.failures(DeadFilter(reviews=tuple(Review)))
        return await admin.failure_hours([group.fingerprint for group in found])

    asked["failures by the hour"] = by_hour
    for name, wanted in {
        "(all)": AuditFilter(), "--actor": AuditFilter(actor="person-7"), "--actor, none": AuditFilter(actor="nobody"),
        "--action": AuditFilter(action="hold"), "--job": AuditFilter(job_id=some["dead"]),
        "--about": AuditFilter(about="schedule:nightly-10"), "--correlation": AuditFilter(correlation_id="flow-500"),
    }.items():  # fmt: skip
        asked[f"audit list {name}"] = lambda admin, wanted=wanted: admin.trail(wanted)
    asked["stats (counts)"] = lambda admin: admin.stats()
    asked["stats, an hour"] = lambda admin: admin.overview(HOUR)
    asked["stats, a day"] = lambda admin: admin.overview(DAY)
    asked["figures, an hour"] = lambda admin: admin.figures(HOUR)
    asked["figures, a day"] = lambda admin: admin.figures(DAY)
    asked["series, an hour"] = lambda admin: admin.series(HOUR)
    asked["series, a day"] = lambda admin: admin.series(DAY)
    asked["depths, an hour"] = lambda admin: admin.depths(HOUR)
    asked["depths, a day"] = lambda admin: admin.depths(DAY)
    asked["tenants, an hour"] = lambda admin: admin.tenants(HOUR)
    asked["tenants, a day"] = lambda admin: admin.tenants(DAY)
    asked["tenants along a day"] = lambda admin: admin.tenant_series(DAY)
    asked["what took room, a day"] = lambda admin: admin.room_series(DAY)
    asked["who has the slots"] = lambda admin: admin.running_by_tenant()
    asked["unserved"] = lambda admin: admin.unserved()
    asked["living"] = lambda admin: admin.living()
    asked["tasks"] = lambda admin: admin.tasks()
    asked["heads"] = lambda admin: admin.store.heads()
    asked["schedule ticks"] = lambda admin: admin.store.ticks("nightly")

    async def tick_days(admin: Admin) -> Any:
        since = await admin.store.now() - timedelta(days=30)
        return await admin.store.tick_days("nightly", since, late=60.0, limit=100_000)

    asked["ticks of a schedule by day"] = tick_days
    asked["top"] = lambda admin: admin.picture()
    asked["why the first of a queue waits"] = lambda admin: admin.explain_first(queue="reports")
    asked["payload sizes"] = lambda admin: admin.payload_sizes()
    asked["stints of a worker"] = lambda admin: admin.stints(uuid4(), 600.0)

    async def followed(admin: Admin) -> Any:
        return await admin.happened(Mark(await admin.store.now()), HappeningFilter())

    asked["tail"] = followed
    for by_tenant in (False, True):
        asked[f"backlog{' by tenant' if by_tenant else ''}"] = lambda admin, by_tenant=by_tenant: (
            admin.store.backlog("default", cap=10_000, by_tenant=by_tenant)
        )
    return asked


def some_ids(url: str) -> dict[str, UUID]:
    """Jobs to ask about."""
    with psycopg.connect(url) as connection:
        return {
            name: connection.execute(f"SELECT {what} LIMIT 1").fetchone()[0]  # type: ignore[index]
            for name, what in {
                "finished": "id FROM rota.finished_jobs WHERE subject IS NOT NULL ORDER BY id DESC OFFSET 1000",
                "parent": "parent_id FROM rota.finished_jobs WHERE parent_id IS NOT NULL",
                "dead": "id FROM rota.dead_jobs WHERE subject IS NOT NULL ORDER BY id DESC OFFSET 50",
                "waiting": "id FROM rota.jobs WHERE state = 'pending' AND gate IS NULL ORDER BY run_at DESC",
                "gated": "id FROM rota.jobs WHERE state = 'pending' AND gate IS NOT NULL ORDER BY run_at DESC",
            }.items()
        }


class Sent(NamedTuple):
    """A statement as a store sent it."""

    sql: str
    parameters: dict[str, Any]
    custom: bool
    """Planned for these values; else once for all, as connections to the server itself ask for."""


PLANLESS = re.compile(r"(UN)?LISTEN|SHOW|SET", re.IGNORECASE)
"""Statements that have no plan; `rota doctor` sends itself a hint."""


@contextmanager
def overheard() -> Iterator[list[Sent]]:
    """The statements that stores send meanwhile."""
    sent: list[Sent] = []
    tailored: set[int] = set()
    execute, ask = PromptConnection.execute, PromptConnection.ask

    async def executing(self: Any, query: Any, params: Any = None, **options: Any) -> Any:
        if "plan_cache_mode" in str(query):
            tailored.add(id(self))  # until the transaction ends
        elif isinstance(query, str) and not isinstance(params, list) and not PLANLESS.match(query):
            inside = self.pgconn.transaction_status == TransactionStatus.INTRANS
            sent.append(Sent(query, dict(params or {}), inside and id(self) in tailored))
        return await execute(self, query, params, **options)

    async def asking(self: Any, verb: str, values: Any) -> Any:
        from rota.stores.postgres.sqlfiles import statement

        sent.append(Sent(statement(verb), dict(values), custom=False))
        return await ask(self, verb, values)

    PromptConnection.execute, PromptConnection.ask = executing, asking  # type: ignore[method-assign,assignment]
    try:
        yield sent
    finally:
        PromptConnection.execute, PromptConnection.ask = execute, ask  # type: ignore[method-assign]


class Scan(NamedTuple):
    """One table that a plan reads from end to end."""

    table: str
    rows: int
    """How many rows it looked at."""


def scans(connection: psycopg.Connection, sent: Sent) -> list[Scan]:
    """The sequential scans in the plan by which the server answers this statement."""
    told = _explained(connection, sent)
    found: list[Scan] = []

    def walk(node: dict[str, Any]) -> None:
        if node["Node Type"] == "Seq Scan":
            looked = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            found.append(Scan(node["Relation Name"], round(looked)))
        for child in node.get("Plans", ()):
            walk(child)

    walk(told)
    return found


def _explained(connection: psycopg.Connection, sent: Sent) -> dict[str, Any]:
    explain = "EXPLAIN (ANALYZE, FORMAT JSON) "
    cursor = psycopg.ClientCursor(connection)
    with connection.transaction(force_rollback=True):
        if sent.custom or not sent.parameters:
            row = cursor.execute(explain + sent.sql, sent.parameters).fetchone()
        else:
            numbers: dict[str, int] = {}
            text = re.sub(
                r"%\((\w+)\)s", lambda m: f"${numbers.setdefault(m[1], len(numbers) + 1)}", sent.sql
            )
            connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
            connection.execute(f"PREPARE asked AS {text.replace('%%', '%')}", prepare=False)
            values = ", ".join(["%s"] * len(numbers))
            row = cursor.execute(
                f"{explain} EXECUTE asked({values})", [sent.parameters[name] for name in numbers]
            ).fetchone()
            connection.execute("DEALLOCATE asked")
    assert row is not None
    plans: list[dict[str, Any]] = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return plans[0]["Plan"]  # type: ignore[no-any-return]
