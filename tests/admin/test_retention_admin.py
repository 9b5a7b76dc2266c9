"""Retention for people: policies that are checked and audited, purges with who and how many, archived jobs shown."""

from __future__ import annotations

import asyncio

import pytest

from build import Clock, a_running_job, completed, new_id
from rota._core.actions import AuditFilter
from rota._core.retention import Policy, Pruned, Pruning
from rota.admin import Admin
from rota.admin.retention import default_policies
from rota.errors import ConfigError, JobArchived, JobNotFound
from rota.stores.contract import Store

DAY = 86_400.0


@pytest.fixture
def admin(store: Store) -> Admin:
    return Admin(store, actor="ann")


async def rows(store: Store, action: str):
    return await store.audit_trail(AuditFilter(action=action))


async def some_ended_jobs(store: Store, count: int = 3, **options):
    jobs = [await a_running_job(store, **options) for _ in range(count)]
    await store.settle([completed(job) for job in jobs])
    return jobs


async def test_a_policy_is_audited_with_what_it_was_and_what_it_is(store, admin, clock):
    await admin.set_policy(Policy(DAY, task="ping"), reason="small ones")
    await admin.set_policy(Policy(None, task="ping"), reason="audit of the year")
    removed = await admin.remove_policy(Policy(None, task="ping"))

    assert removed == Policy(None, None, "ping", None, "audit of the year", "ann", clock.now)
    assert await admin.remove_policy(Policy(None, task="ping")) is None
    assert [(row.before, row.after, row.reason) for row in reversed(await rows(store, "retention_set"))] == [
        (None, "86400 s", "small ones"),
        ("86400 s", "for ever", "audit of the year"),
    ]
    [gone] = await rows(store, "retention_removed")
    assert (gone.actor, gone.before, gone.about) == ("ann", "for ever", "retention:task=ping")


@pytest.mark.parametrize(
    ("policy", "wrong"),
    [
        (Policy(DAY, "running"), "about jobs that have ended, not about 'running'; choose completed"),
        (Policy(DAY, "archived", tenant="acme"), "the archive is kept as a whole"),
        (Policy(-1.0), "cannot be kept for -1.0 s"),
        (Policy(DAY, task=" "), "the task of a retention policy is empty"),
    ],
)
async def test_a_policy_that_cannot_be_is_refused_with_what_to_do(store, admin, policy, wrong):
    with pytest.raises(ConfigError, match=wrong):
        await admin.set_policy(policy)

    assert await store.policies() == []


async def test_what_counts_where_nobody_set_a_policy_can_be_shown():
    assert {policy.state: policy.keep for policy in default_policies()} == {
        "completed": 7 * DAY,
        "partial": 7 * DAY,
        "cancelled": 7 * DAY,
        "dead": 30 * DAY,
        "archived": 365 * DAY,
    }


async def test_a_purge_by_hand_is_audited_with_who_what_and_how_many(store, admin, clock: Clock):
    jobs = await some_ended_jobs(store, tenant="acme")
    clock.advance(DAY + 1)
    heard: list[int] = []
    wanted = Pruning(states=("completed",), tenant="acme", older_than=DAY)
    pruned = await admin.prune(wanted, reason="contract ended", on_progress=heard.append)

    assert pruned == Pruned(finished=3)
    assert heard[-1] == 3
    [asked], [done] = await rows(store, "prune"), await rows(store, "pruned")
    assert (asked.actor, asked.reason) == ("ann", "contract ended")
    assert asked.after == "state=completed tenant=acme older_than=86400s"
    assert (done.after, done.about) == ("3 archived", asked.about)
    with pytest.raises(JobArchived):
        await admin.show(jobs[0].id)
    assert (await admin.archived(jobs[0].id)).tenant == "acme"
    with pytest.raises(JobNotFound):
        await admin.archived(new_id())


async def test_a_purge_that_is_stopped_says_in_the_audit_how_far_it_came(store, admin, clock: Clock):
    await some_ended_jobs(store)
    clock.advance(9 * DAY)

    def stop(_: int) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await admin.prune(Pruning(), on_progress=stop)

    [stopped] = await rows(store, "prune_stopped")
    assert stopped.after == "3 archived"
    assert await rows(store, "pruned") == []


async def test_what_is_not_over_cannot_be_pruned(admin):
    with pytest.raises(ConfigError, match="only jobs that have ended can be pruned, not running, held"):
        await admin.foresee(Pruning(states=("running", "held")))


async def test_a_tenants_view_shows_its_own_archived_jobs_and_nobody_elses(store, clock: Clock):
    [mine] = await some_ended_jobs(store, 1, tenant="acme")
    [other] = await some_ended_jobs(store, 1, tenant="zen")
    clock.advance(9 * DAY)
    await Admin(store, actor="ann").prune(Pruning())
    acme = Admin(store, actor="bob", tenant="acme")

    with pytest.raises(JobArchived):
        await acme.show(mine.id)
    with pytest.raises(JobNotFound) as caught:
        await acme.show(other.id)
    assert not isinstance(caught.value, JobArchived)
