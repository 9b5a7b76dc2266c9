"""What a user writes, and the types it has. Read by type checkers, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, assert_type
from uuid import UUID

from rota import Handle, Job, Retry, Rota, State, Task, Unique, context, current_job, every
from rota.current import RunningJob
from rota.enqueueing import BulkResult
from rota.resource import Resource
from rota.task import SyncTask

app = Rota()


@dataclass
class Receipt:
    number: int


@app.task
async def bare(to: str, times: int = 1) -> Receipt:
    job = current_job()
    assert_type(job, RunningJob)
    assert_type(job.id, UUID)
    return Receipt(times)


@app.task(
    queue="fast", retry=Retry(attempts=5), timeout="2m", serial="account", unique=Unique("to", until="5m"),
    key=lambda to, account: f"{to}{account}", tags=["a"], executor="aio",
)  # fmt: skip
async def optioned(to: str, *, account: int) -> Receipt:
    return Receipt(account)


@app.task(retry=3)
def plain(number: int) -> list[int]:
    return [number]


@app.resource
async def database() -> AsyncIterator[dict[str, int]]:
    yield {}


@app.resource
async def mailer() -> Receipt:
    return Receipt(1)


@app.middleware
async def timed(job: RunningJob, call_next: Callable[[], Awaitable[Any]]) -> Any:
    return await call_next()


@app.schedule(
    "30 2 * * *",
    tz="Europe/Berlin",
    jitter="2m",
    overlap="skip",
    misfire="last",
    windows=["0 1 * * SUN for 2h"],
)
@app.task
async def nightly(days: int = 1) -> Receipt:
    assert_type(current_job().tick, datetime | None)
    return Receipt(days)


@app.schedule(every("5m"))
def poll() -> list[int]:
    return []


scheduled = app.schedule("@daily", name="a")(plain, 7)
app.schedule("0 6 * * MON", name="b", misfire="all", cap=24)(optioned.using(queue="q"), "a", account=7)


async def use() -> None:
    assert_type(await bare("a"), Receipt)
    assert_type(plain(1), list[int])
    assert_type(await nightly(), Receipt)
    assert_type(await nightly.enqueue(days=2), Handle[Receipt])
    assert_type(poll(), list[int])
    assert_type(scheduled(1), list[int])
    begun = assert_type(bare("a", times=2), Coroutine[Any, Any, Receipt])
    await begun

    handle = await bare.enqueue("a", times=2)
    assert_type(handle, Handle[Receipt])
    assert_type(await handle, Receipt)
    assert_type(await handle.result(timeout="5s"), Receipt)
    assert_type(await handle.status(), State | Literal["archived"])
    assert_type(await handle.refresh(), Job)
    assert_type(await handle.cancel(reason="no"), bool)
    assert_type(handle.created, bool)
    assert_type(handle.id, UUID)

    assert_type(await optioned.enqueue("a", account=7), Handle[Receipt])
    assert_type(await plain.enqueue(1), Handle[list[int]])
    configured = optioned.using(
        queue="q", priority=1, at=datetime.now(UTC), tenant="t", subject="s", key="k", key_window="1h", unique="u",
        serial="s", correlation_id="c", parent=handle, tags=["x"], created_by="me", category="sync", deadline="1h",
        timeout=5, max_attempts=3, external_id="e", tx=object(),
    )  # fmt: skip
    assert_type(await configured.enqueue("a", account=7), Handle[Receipt])
    assert_type(await configured.using(delay=5).enqueue_many([("a", 7)]), BulkResult[Receipt])
    for each in await plain.enqueue_many([1, 2]):
        assert_type(each, Handle[list[int]])

    with context(tenant="acme"):
        assert_type(await app.enqueue("bare", {"to": "a"}, priority=3), Handle[Any])
    assert_type(await app.job("id"), Any)
    assert_type(await app.migrate(), list[str])
    assert_type(database, Resource[dict[str, int]])
    assert_type(database(), dict[str, int])
    assert_type(mailer(), Receipt)


def use_without_async() -> None:
    handle = bare.enqueue_sync("a", times=2)
    assert_type(handle, Handle[Receipt])
    assert_type(handle.result_sync(timeout=5), Receipt)
    assert_type(handle.status_sync(), State | Literal["archived"])
    assert_type(handle.cancel_sync("no"), bool)
    assert_type(optioned.using(queue="q").enqueue_sync("a", account=1), Handle[Receipt])
    assert_type(plain.enqueue_many_sync([1]), BulkResult[list[int]])
    assert_type(app.migrate_sync(), list[str])
    assert_type(app.enqueue_sync("bare", {"to": "a"}), Handle[Any])


def takes_any_task(task: Task[[int], list[int]]) -> None:
    task.enqueue_sync(1)


takes_any_task(plain)
kept: SyncTask[[int], list[int]] = plain
