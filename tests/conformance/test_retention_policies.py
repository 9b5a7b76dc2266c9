"""Retention policies: "of those that fit a job, the most specific counts"."""

from __future__ import annotations

import pytest

from build import Clock, cancelled
from kept import an_ended_job, set_policy, states
from rota._core.actions import Audit
from rota._core.retention import Policy
from rota.stores.contract import Store
from rota.stores.retention_contract import Retention

DAY = 86_400.0
DEFAULT = Retention()


@pytest.mark.req("V37")
async def test_of_the_policies_that_fit_a_job_the_most_specific_counts(store: Store, clock: Clock):
    for policy in (
        Policy(2 * DAY),
        Policy(3 * DAY, "completed"),
        Policy(4 * DAY, task="ping"),
        Policy(5 * DAY, "completed", "ping"),
        Policy(6 * DAY, tenant="acme"),
        Policy(None, "cancelled", "ping", "acme"),
    ):
        await set_policy(store, policy)
    jobs = {
        2: await an_ended_job(store, end=cancelled, task="mail"),
        3: await an_ended_job(store, task="mail", tenant="zen"),
        4: await an_ended_job(store, end=cancelled, task="ping"),
        5: await an_ended_job(store, task="ping"),
        6: await an_ended_job(store, task="ping", tenant="acme"),
        99: await an_ended_job(store, end=cancelled, task="ping", tenant="acme"),
    }
    clock.advance(DAY / 2)  # midnight: whole days count from the end of the day
    for day in range(8):
        await store.tidy(DEFAULT)
        expected = ["archived" if keep <= day else jobs_state(keep) for keep in jobs]
        assert await states(store, *jobs.values()) == expected, f"after {day} days"
        clock.advance(DAY)


def jobs_state(keep: int) -> str:
    return "cancelled" if keep in (2, 4, 99) else "completed"


async def test_policies_are_set_in_place_of_each_other_listed_and_removed_with_an_audit_row_each(
    store: Store, clock: Clock
):
    await set_policy(store, Policy(DAY, task="ping", reason="small"))
    await set_policy(store, Policy(None, tenant="acme", reason="legal hold"))
    clock.advance(60)
    await set_policy(store, Policy(2 * DAY, task="ping"), by="bob")
    await set_policy(store, Policy(2 * DAY, task="ping"), by="bob")

    acme, ping = await store.policies()
    assert (acme.tenant, acme.keep, acme.reason, acme.set_by) == ("acme", None, "legal hold", "ann")
    assert ping == Policy(2 * DAY, task="ping", set_by="bob", set_at=clock.now)
    removed = Audit("ann", "retention_removed", None, about="retention:tenant=acme")
    assert await store.remove_policy(Policy(None, tenant="acme"), removed) is True
    assert await store.remove_policy(Policy(None, tenant="acme"), removed) is False
    assert await store.policies() == [ping]
    assert [row.action for row in await store.audit(about="retention:task=ping")] == ["retention_set"] * 2
    assert [row.action for row in await store.audit(about="retention:tenant=acme")] == [
        "retention_removed",
        "retention_set",
    ]


async def test_a_policy_that_changes_counts_for_days_that_were_gone_through_already(
    store: Store, clock: Clock
):
    job = await an_ended_job(store, tenant="acme")
    await set_policy(store, Policy(None, tenant="acme"))
    clock.advance(30 * DAY)
    for _ in range(2):
        await store.tidy(DEFAULT)
    assert await states(store, job) == ["completed"]

    await set_policy(store, Policy(10 * DAY, tenant="acme"))
    await store.tidy(DEFAULT)
    assert await states(store, job) == ["archived"]
