"""Reviews with both sides held still: one change, one new job, one row in the audit, whoever comes second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from build import a_running_job, claim, completed, failed, new_id
from rota._core.actions import Audit
from rota._core.dead_letter import DeadFilter, follower
from rota._core.failure import ErrorClass
from rota._core.review import REQUESTED, SUCCESS, Landed, Review, ReviewVerb, review
from rota.stores.postgres.sqlfiles import statement

RETURNED = "UPDATE rota.dead_jobs SET review = 'pending_review', version = version + 1 WHERE id = %s"


@pytest.fixture
async def dead(store):
    job = await a_running_job(store, key="k", unique_key="u")
    await store.settle([failed(job, ErrorClass.NON_RETRYABLE)])
    return (await store.dead_letter(job.id)).job


def reprocessing(dead):
    new = follower(dead, new_id(), by="ann")
    audits = [Audit("ann", action, dead.id) for action in (REQUESTED, SUCCESS)]
    return review(dead, ReviewVerb.REPROCESS, by="ann"), new, audits


async def on(side, call):
    """Run a call of the side's store on its open transaction."""
    letters = side.desk.ledger.letters

    async def run(work, **_):
        return await work(side.connection, False)

    letters._connections.run = run
    return await call(letters)


@pytest.mark.scenario(14)
async def test_a_second_click_waits_for_the_first_and_gets_its_job(store, side, waits, dead):
    first = reprocessing(dead)
    await on(side, lambda letters: letters.reprocess(*first))
    async with waits(store.reprocess(*reprocessing(dead))) as second:
        await side.commit()
        answer = await second

    assert (answer.landed, answer.new_job) == (Landed.ALREADY, first[1].id)
    assert [job.id for job in await claim(store)] == [first[1].id]
    assert [row.action for row in await store.audit(dead.id)] == [SUCCESS, REQUESTED]


@pytest.mark.scenario(14)
async def test_a_click_whose_transaction_fell_over_leaves_nothing(store, side, waits, dead):
    await on(side, lambda letters: letters.reprocess(*reprocessing(dead)))
    mine = reprocessing(dead)
    async with waits(store.reprocess(*mine)) as second:
        await side.rollback()
        answer = await second

    assert (answer.landed, answer.new_job) == (Landed.APPLIED, mine[1].id)
    assert [job.id for job in await claim(store)] == [mine[1].id]
    assert len(await store.audit(dead.id)) == 2


@pytest.mark.scenario(14)
async def test_a_discard_that_waited_for_a_reprocess_is_fenced(store, side, waits, dead):
    await on(side, lambda letters: letters.reprocess(*reprocessing(dead)))
    change = review(dead, ReviewVerb.DISCARD, by="bob")
    async with waits(store.change_review(change, Audit("bob", "job_dlq_discarded", dead.id))) as late:
        await side.commit()
        answer = await late

    assert (answer.landed, answer.review) == (Landed.FENCED, Review.REPROCESSING)
    assert "job_dlq_discarded" not in [row.action for row in await store.audit(dead.id)]


async def test_a_review_that_was_judged_by_an_older_new_job_is_left_alone(store, side, dead):
    """Judged as completed; meanwhile somebody sent it back and it is reprocessed once more."""
    await store.reprocess(*reprocessing(dead))
    await store.settle([completed(job) for job in await claim(store)])
    cursor = await side.connection.execute(statement("reviews_open"), {"limit": 10})
    [judged] = await cursor.fetchall()
    await side.execute(RETURNED, [dead.id])
    await side.commit()
    back = (await store.dead_letter(dead.id)).job
    again = reprocessing(back)
    await store.reprocess(*again)

    assert await store._ledger().letters._settle_one(judged) == 0
    assert (await store.dead_letter(dead.id)).review is Review.REPROCESSING
    assert await store.settle_reviews() == (0, 1)


async def test_what_died_under_older_code_gets_its_fingerprint_later(store, side, dead):
    await side.execute("UPDATE rota.dead_jobs SET fingerprint = NULL, error_type = NULL, frame = NULL")
    await side.commit()
    assert await store.failure_groups(DeadFilter()) == []
    await store.settle_reviews()

    [group] = await store.failure_groups(DeadFilter())
    letter = await store.dead_letter(dead.id)
    assert (group.fingerprint, letter.error_type) == (letter.fingerprint, "ValueError")
    assert letter.job.version == dead.version


def nodes(plan: dict) -> Iterator[dict]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


async def walked(store, verb: str, parameters: dict) -> tuple[set[str], set[str]]:
    """The tables that a statement would walk from end to end, and the indexes that it would read."""
    async with store._desks().connections.connection() as connection:
        await connection.execute("ANALYZE rota.dead_jobs")
        async with connection.transaction():
            if verb != "reviews_open":  # as the store asks: filters are planned for what was asked
                await connection.execute("SET LOCAL plan_cache_mode = force_custom_plan")
            asked = "EXPLAIN (FORMAT JSON) " + statement(verb)
            rows = await (await connection.execute(asked, parameters, prepare=False)).fetchone()
    found = list(nodes(rows[0][0]["Plan"]))
    tables = {node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"}
    return tables, {node["Index Name"] for node in found if "Index Name" in node}


async def test_groups_and_pages_of_many_dead_jobs_walk_no_table(store, side):
    await side.execute(
        "INSERT INTO rota.dead_jobs (id, run_at, created_at, finished_at, version, snoozes, priority, attempt,"
        " max_attempts, losses, task, queue, payload, fingerprint)"
        " SELECT rota.new_id(), now(), now(), now() - make_interval(secs => n), 3, 0, 100, 1, 1, 0, 'mail', 'default',"
        " '{}', 'group' || n %% 7 FROM generate_series(1, 5000) AS n", ()
    )  # fmt: skip
    await side.commit()
    asked = dict.fromkeys(
        ("id", "group", "task", "queue", "tenant", "error_class", "subject", "correlation_id", "correlation_uuid",
         "since", "until", "before", "now")
    )  # fmt: skip
    waiting = {"reviews": ["pending_review"], "limit": 50, "cap": 9}
    groups = await walked(store, "failure_groups", asked | waiting)
    pages = [
        await walked(store, "dead_letters", asked | waiting | narrow)
        for narrow in ({"reviews": None}, {"group": "group3"}, {"reviews": ["discarded"]}, {"id": new_id()})
    ]
    chore = await walked(store, "reviews_open", {"limit": 200})

    hours = await walked(
        store,
        "failure_hours",
        {"groups": ["group3"], "hours": 24, "cap": 9, "now": None, "reviews": ["resolved"]},
    )

    assert "dead_jobs_group" in groups[1] & hours[1]
    pages.append(await walked(store, "deaths", asked | waiting | {"group": "group3"}))
    for tables, _ in (groups, hours, chore, *pages):
        assert "dead_jobs" not in tables, (groups, chore, pages)
    assert len(await store.failure_groups(DeadFilter())) == 7
