"""Tasks: "make these tasks known; what is known of others stays"."""

from __future__ import annotations

import json

import pytest

from build import new_id
from rota._core.actions import Audit
from rota._core.failure import ErrorClass
from rota._core.retry import Retry
from rota._core.rules import KeyRule, TaskRules
from rota._core.task_spec import TaskSpec
from rota.stores.contract import Store

FULL = TaskSpec(
    name="email",
    queue="fast",
    priority=50,
    retry=Retry(attempts=7, jitter=0.5, classes={"httpx.ConnectError": ErrorClass.TRANSIENT}, lost=False),
    timeout=120.0,
    payload_version="2.1",
    schema_json='{"type": "object", "properties": {"to": {"type": "string"}}}',
    gate_path="account_id",
    category="notifications",
    code_version="abc123",
    rules=TaskRules(
        key=KeyRule("order"),
        unique=KeyRule("account_id", "7"),
        serial=KeyRule(None),
        unique_scope="window",
        unique_window=60.5,
        on_duplicate="merge",
        tags=("mail", "ä"),
    ),
)


def plain(task: TaskSpec) -> TaskSpec:
    return task._replace(schema_json=json.dumps(json.loads(task.schema_json), sort_keys=True))


async def test_a_task_is_known_with_everything_that_was_said_of_it(store: Store):
    await store.publish([FULL])

    assert [plain(task) for task in await store.tasks()] == [plain(FULL)]


@pytest.mark.req("L7")
async def test_every_task_has_a_queue_even_when_nobody_named_one(store: Store):
    await store.publish([TaskSpec("analysis", queue="slow"), TaskSpec("plain")])

    assert {task.name: task.queue for task in await store.tasks()} == {"analysis": "slow", "plain": "default"}


async def test_the_newest_publication_of_a_task_wins_and_others_stay(store: Store):
    await store.publish([FULL, TaskSpec("report")])
    await store.publish([FULL._replace(queue="slow", timeout=None, code_version="abc124")])

    assert [(task.name, task.queue, task.timeout) for task in await store.tasks()] == [
        ("email", "slow", None),
        ("report", "default", None),
    ]


async def test_publishing_nothing_changes_nothing(store: Store):
    await store.publish([])

    assert await store.tasks() == []


async def test_a_store_can_be_opened_and_migrated_any_number_of_times(store: Store):
    await store.open()
    await store.open()

    assert await store.migrate() == []
    assert store.name
    assert await store.get([new_id()]) == []


async def test_what_a_person_publishes_is_told_in_the_audit_and_what_a_worker_publishes_is_not(store: Store):
    await store.publish([FULL])
    assert await store.audit() == []

    await store.publish([FULL], Audit("ann", "deploy", None, after="v2", about="deploy:1"))

    [row] = await store.audit(about="deploy:1")
    assert (row.actor, row.action, row.after) == ("ann", "deploy", "v2")
