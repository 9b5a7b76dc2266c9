"""One verb on all jobs that match: never more than the filter says, and all of it."""

from __future__ import annotations

import pytest

from rota._core.actions import Verb
from rota._core.job import State
from rota.admin import Admin, bulk
from rota.errors import StoreUnavailable
from rota.stores.contract import JobFilter


async def states(store, **filters):
    return [job.state for job in await store.find(JobFilter(limit=10_000, oldest_first=True, **filters))]


async def test_a_sweep_acts_on_every_match_over_many_pages(admin, shop, monkeypatch):
    monkeypatch.setattr(bulk, "PAGE", 7)
    for _ in range(30):
        await shop.add("mail")
    await shop.add("report")

    swept = await admin.sweep(Verb.HOLD, JobFilter(task="mail"), reason="smtp is down")

    assert swept == bulk.Swept(done=30)
    assert set(await states(admin.store, task="mail")) == {State.HELD}
    assert await states(admin.store, task="report") == [State.PENDING]
    assert {row.reason for row in await admin.store.audit(limit=100)} == {"smtp is down"}


async def test_a_limit_takes_the_newest_and_leaves_the_rest(admin, shop, monkeypatch):
    monkeypatch.setattr(bulk, "PAGE", 2)
    for _ in range(8):
        await shop.add()

    swept = await admin.sweep(Verb.CANCEL, JobFilter(), limit=5)

    assert swept.done == 5
    assert await states(admin.store) == [State.PENDING] * 3 + [State.CANCELLED] * 5


async def test_retry_by_filter_means_the_dead_unless_the_filter_says_otherwise(admin, shop):
    dead = await shop.dead()
    cancelled = await shop.add()
    await admin.cancel(cancelled)

    first = await admin.sweep(Verb.RETRY, JobFilter())
    between = (await admin.job(dead)).state, (await admin.job(cancelled)).state
    second = await admin.sweep(Verb.RETRY, JobFilter(states=(State.CANCELLED,)))

    assert (first.done, between) == (1, (State.PENDING, State.CANCELLED))
    assert (second.done, (await admin.job(cancelled)).state) == (1, State.PENDING)


async def test_delete_by_filter_means_ended_jobs_only(admin, shop):
    await shop.dead()
    waiting = await shop.add()

    swept = await admin.sweep(Verb.DELETE, JobFilter())

    assert swept.done == 1
    assert [job.id for job in await admin.list(JobFilter())] == [waiting]


async def test_a_sweep_of_cancels_says_how_many_workers_it_asked(admin, shop):
    running = await shop.add()
    await shop.run(running)
    await shop.add()

    swept = await admin.sweep(Verb.CANCEL, JobFilter())

    assert swept == bulk.Swept(done=2, asked=1)


async def test_what_a_state_forbids_is_counted_as_refused_and_stops_nothing(admin, shop):
    running = await shop.add()
    await shop.run(running)
    await shop.add()

    swept = await admin.sweep(Verb.HOLD, JobFilter(states=(State.RUNNING, State.PENDING)))

    assert swept == bulk.Swept(done=1, refused=1)


class Moving:
    """A store in which every job moves on between being found and being changed."""

    def __init__(self, store, move):
        self.store, self.move = store, move

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def find(self, wanted):
        found = await self.store.find(wanted)
        for job in found:
            await self.move(job)
        return found


async def test_a_job_that_left_the_filter_meanwhile_is_not_touched(store, shop):
    job_id = await shop.add()

    async def start(job):
        await shop.run(job.id)

    admin = Admin(Moving(store, start), actor="ann@office")
    swept = await admin.sweep(Verb.CANCEL, JobFilter(states=(State.PENDING,)))

    assert swept == bulk.Swept(changed=1)
    assert (await store.get([job_id]))[0].cancel_requested_at is None


async def test_a_job_that_changed_within_the_filter_is_decided_again(store, shop):
    job_id = await shop.add()
    rival = Admin(store, actor="bob@office")

    async def touch(job):
        await rival.hold(job.id)
        await rival.release(job.id)

    swept = await Admin(Moving(store, touch), actor="ann@office").sweep(Verb.CANCEL, JobFilter())

    assert swept == bulk.Swept(done=1)
    assert (await store.get([job_id]))[0].state is State.CANCELLED


async def test_a_job_that_was_removed_meanwhile_is_counted_as_changed(store, shop):
    await shop.dead()
    rival = Admin(store, actor="bob@office")

    async def remove(job):
        await rival.delete(job.id)

    swept = await Admin(Moving(store, remove), actor="ann@office").sweep(Verb.RETRY, JobFilter())

    assert swept == bulk.Swept(changed=1)


class Breaking:
    def __init__(self, store, after):
        self.store, self.left = store, after

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def change(self, change, audit):
        self.left -= 1
        if self.left < 0:
            raise StoreUnavailable("the database went away")
        return await self.store.change(change, audit)


async def test_a_sweep_that_loses_its_store_can_be_repeated_for_the_rest(store, shop):
    for _ in range(20):
        await shop.add()

    with pytest.raises(StoreUnavailable):
        await Admin(Breaking(store, 12), actor="ann@office").sweep(Verb.HOLD, JobFilter())
    rest = await Admin(store, actor="ann@office").sweep(Verb.HOLD, JobFilter())

    assert rest.done == 8
    assert set(await states(store)) == {State.HELD}


async def test_progress_is_told_as_the_batches_go(admin, shop):
    for _ in range(25):
        await shop.add()
    seen = []

    await admin.sweep(Verb.HOLD, JobFilter(), on_progress=lambda so_far: seen.append(so_far.met))

    assert seen == [10, 20, 25]


async def test_a_count_changes_nothing_and_meets_what_the_sweep_would(admin, shop):
    for _ in range(3):
        await shop.add()
    await shop.dead("report")

    assert str(await admin.count(Verb.CANCEL, JobFilter())) == "3"
    assert str(await admin.count(Verb.CANCEL, JobFilter(), limit=2)) == "2"
    assert str(await admin.count(Verb.RETRY, JobFilter(task="report"))) == "1"
    assert str(await admin.count(Verb.RELEASE, JobFilter())) == "0"
    assert await admin.store.audit() == []


async def test_a_count_stops_at_its_cap_and_says_so(admin, shop, monkeypatch):
    monkeypatch.setattr(bulk, "COUNT_CAP", 5)
    for _ in range(5):
        await shop.add()
    exact = await admin.count(Verb.CANCEL, JobFilter())
    await shop.add()

    capped = await admin.count(Verb.CANCEL, JobFilter())

    assert (str(exact), str(capped)) == ("5", "5+")


async def test_fail_and_kill_do_not_work_by_filter(admin):
    with pytest.raises(
        ValueError, match="kill works on one job at a time; by filter: retry, cancel, hold, release, delete"
    ):
        await admin.sweep(Verb.KILL, JobFilter())
