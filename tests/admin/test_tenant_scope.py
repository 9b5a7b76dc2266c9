"""Admin for one tenant: jobs of others are not there, whatever is asked, and what is about all is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from rota._core.actions import Audit, AuditFilter
from rota._core.dead_letter import DeadFilter
from rota._core.review import ReviewVerb
from rota.admin import Admin, scope
from rota.admin.scope import OutOfScope, TenantScope
from rota.errors import JobNotFound, OperationNotFound
from rota.stores.contract import JobFilter, Store


@pytest.fixture
def red(store) -> Admin:
    return Admin(store, actor="rita", tenant="red")


@pytest.fixture
def blue(store) -> Admin:
    return Admin(store, actor="bert", tenant="blue")


async def test_lists_hold_ones_own_jobs_only(shop, red, blue):
    mine, theirs = await shop.add(tenant="red"), await shop.add(tenant="blue")
    await shop.add()

    assert [job.id for job in await red.list(JobFilter())] == [mine]
    assert [job.id for job in await blue.list(JobFilter())] == [theirs]
    assert await red.list(JobFilter(tenant="blue")) == []
    assert await red.store.count_found(JobFilter(), cap=10) == 1
    assert await red.store.count_found(JobFilter(tenant="blue"), cap=10) == 0


@pytest.mark.parametrize(
    "verb", ["job", "show", "explain", "logs", "retry", "hold", "cancel", "kill", "delete", "dead_letter",
             "show_dead_letter", "acknowledge", "discard", "reprocess"]
)  # fmt: skip
async def test_a_foreign_job_is_not_there_for_any_verb_and_nothing_happens_to_it(shop, red, admin, verb):
    job_id = await shop.dead(tenant="blue")
    before = await admin.job(job_id)

    with pytest.raises(JobNotFound):
        await getattr(red, verb)(job_id)

    assert await admin.job(job_id) == before
    assert await admin.trail(AuditFilter()) == []


async def test_ones_own_dead_letters_are_reviewed_and_the_others_are_not_even_counted(shop, red, blue, admin):
    mine, theirs = await shop.dead(tenant="red"), await shop.dead(tenant="blue")

    assert [letter.job.id for letter in await red.dead_letters(DeadFilter())] == [mine]
    assert (await red.match(ReviewVerb.DISCARD, DeadFilter())).jobs == 1
    operation = await red.begin_operation(ReviewVerb.DISCARD, DeadFilter(), reason="not needed")
    done = await red.drive(operation)

    assert done.progress.done == 1
    assert (await admin.dead_letter(mine)).review == "discarded"
    assert (await admin.dead_letter(theirs)).review == "pending_review"
    assert [one.id for one in await red.operations()] == [operation.id]
    assert await blue.operations() == []
    with pytest.raises(OperationNotFound):
        await blue.stop_operation(operation.id)


async def test_groups_of_failures_are_counted_from_ones_own(shop, red, admin):
    """The same failure of the same task is one group for the operators, and each tenant sees his part."""
    mine = [await shop.dead(tenant="red"), await shop.dead(tenant="red")]
    await shop.dead(tenant="blue")

    [whole], [part] = await admin.failures(DeadFilter()), await red.failures(DeadFilter())

    assert (whole.fingerprint, whole.letters) == (part.fingerprint, 3)
    assert (part.letters, part.example) == (2, mine[-1])
    assert part._replace(letters=3, last_hour=3, example=whole.example, last_seen=whole.last_seen) == whole
    assert {letter.job.id for letter in (await red.failure(part.fingerprint)).letters} == set(mine)


async def test_the_audit_tells_of_ones_own_jobs(shop, red, blue, admin):
    mine, theirs = await shop.add(tenant="red"), await shop.add(tenant="blue")
    await admin.hold(mine, reason="red's")
    await admin.hold(theirs, reason="blue's")

    assert [row.reason for row in await red.trail(AuditFilter())] == ["red's"]
    assert [row.reason for row in await blue.trail(AuditFilter())] == ["blue's"]
    assert await red.trail(AuditFilter(job_id=theirs)) == []


async def test_the_audit_of_one_tenant_does_not_end_where_others_were_busy(shop, red, admin, monkeypatch):
    monkeypatch.setattr(scope, "ROUND", 2)
    mine = [await shop.add(tenant="red") for _ in range(2)]
    theirs = await shop.add(tenant="blue")
    for job_id in (mine[0], *[theirs] * 7, mine[1], theirs):
        await admin.store.note(Audit("ann", "reveal", job_id))

    assert [row.job_id for row in await red.trail(AuditFilter())] == mine[::-1]
    assert [row.job_id for row in await red.trail(AuditFilter(limit=1))] == [mine[1]]
    monkeypatch.setattr(scope, "PAGE_ROUNDS", 2)
    seen, before, pages = [], None, 0
    while pages == 0 or before is not None:
        rows, before = await red.trail_page(AuditFilter(before=before))
        seen, pages = [*seen, *(row.job_id for row in rows)], pages + 1
    assert (seen, pages) == (mine[::-1], 3)


async def test_a_page_of_the_audit_looks_at_a_few_rounds_and_asks_for_operations_once(
    shop, red, admin, monkeypatch
):
    monkeypatch.setattr(scope, "ROUND", 2)
    theirs = await shop.add(tenant="blue")
    for number in range(20):
        about = f"operation:{number}" if number % 2 else None
        await admin.store.note(Audit("ann", "reveal", None if about else theirs, about=about))
    asked: Counter[str] = Counter()
    for verb in ("audit_trail", "operations"):
        monkeypatch.setattr(admin.store, verb, counted(asked, verb, getattr(admin.store, verb)))

    rows, stopped = await red.trail_page(AuditFilter())

    assert (rows, stopped is None) == ([], False)
    assert asked == {"audit_trail": scope.PAGE_ROUNDS, "operations": 1}


def counted(asked: Counter[str], verb: str, read):
    async def counting(*args, **options):
        asked[verb] += 1
        return await read(*args, **options)

    return counting


async def test_operations_of_one_tenant_are_found_below_any_number_of_others(shop, red, admin, monkeypatch):
    monkeypatch.setattr(scope, "LOOKED_AT", 1)
    await shop.dead(tenant="red")
    mine = await red.begin_operation(ReviewVerb.DISCARD, DeadFilter())
    for _ in range(3):
        await admin.begin_operation(ReviewVerb.DISCARD, DeadFilter(tenant="blue"))

    assert [one.id for one in await red.operations(limit=1)] == [mine.id]
    assert {row.about for row in await red.trail(AuditFilter())} == {mine.about}


@pytest.mark.parametrize(
    "verb", ["overview", "figures", "series", "depths", "stats", "unserved", "schedules"]
)
async def test_what_is_about_everybody_is_refused_with_what_to_do(red, verb):
    with pytest.raises(OutOfScope, match=r"asked for tenant 'red' alone\. Ask without a tenant"):
        await getattr(red, verb)()


def test_no_verb_of_a_store_is_let_through_by_accident():
    """A new verb of stores is refused until somebody decides here what a tenant may see of it."""
    open_to_tenants = {
        "now", "enqueue", "note", "get", "archived", "find", "attempts", "logs", "change", "standing", "tasks",
        "parked_tasks", "sessions", "queues", "dead_letter", "dead_letters", "count_dead_letters", "failure_groups",
        "failure_hours", "deaths",
        "change_review", "reprocess", "begin_operation", "operations", "advance_operation", "steer_operation",
        "audit", "audit_trail", "figures", "tally", "count_found", "stints",
    }  # fmt: skip
    verbs = {name for name in dir(Store) if not name.startswith("_") and callable(getattr(Store, name))}

    assert {name for name in vars(TenantScope) if not name.startswith("_")} == open_to_tenants
    assert open_to_tenants < verbs
    named = TenantScope(type("Named", (), {"name": "memory"})(), "red")
    for verb in verbs - open_to_tenants:
        with pytest.raises(OutOfScope):
            getattr(named, verb)


async def test_failures_of_one_tenant_are_counted_without_reading_a_payload(shop, red, store, monkeypatch):
    """Pages ask for them each second, and a payload may be large."""
    await shop.dead(tenant="red")
    await shop.dead(tenant="blue")

    async def whole(_wanted):
        raise AssertionError("whole dead letters were read to be counted")

    monkeypatch.setattr(store, "dead_letters", whole)
    [group] = await red.failures(DeadFilter())
    hours = await red.failure_hours([group.fingerprint, "unknown"], hours=2)

    assert (group.letters, hours) == (1, {group.fingerprint: [0, 1], "unknown": [0, 0]})
    assert await red.store.deaths(DeadFilter(tenant="blue")) == []
