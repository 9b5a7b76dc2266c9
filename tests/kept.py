"""Builders for stories of retention: an_ended_job(store), states(store, job, ...), set_policy(store, policy)."""

from __future__ import annotations

from build import a_running_job, completed
from rota._core.actions import Audit
from rota._core.retention import Policy
from rota.stores.contract import Store


async def an_ended_job(store: Store, end=completed, **options):
    job = await a_running_job(store, **options)
    await store.settle([end(job)])
    return job


async def states(store: Store, *jobs) -> list[str]:
    """Of each job: its state, `archived`, or `gone`."""
    ids = [job.id for job in jobs]
    whole = {job.id: job.state.value for job in await store.get(ids)}
    summaries = {row.id: "archived" for row in await store.archived(ids)}
    assert not whole.keys() & summaries.keys(), "a job is whole or archived, never both"
    return [(whole | summaries).get(job_id, "gone") for job_id in ids]


async def set_policy(store: Store, policy: Policy, by: str = "ann") -> None:
    told = Audit(by, "retention_set", None, about=f"retention:{policy.words}")
    await store.set_policy(policy._replace(set_by=by), told)
