"""Purges beside claims, settles, reprocessing, reviving and keys: nothing is lost, and nothing goes early."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from build import a_job, a_session, by_hand, cancelled, completed, failed
from letters import change_of, reprocessed, reviewed
from rota._core.actions import Audit, Verb
from rota._core.failure import ErrorClass
from rota._core.job import Job, State
from rota._core.retention import EVERYTHING, Policy
from rota._core.review import ReviewVerb
from rota.errors import NotUnique
from rota.stores.contract import Stored, Wanted
from rota.stores.postgres import PostgresStore, retention
from rota.stores.retention_contract import Retention

LOST = """
SELECT id::text FROM unnest(%s::uuid[]) AS known (id)
WHERE (SELECT count(*) FROM rota.all_jobs AS j WHERE j.id = known.id)
    + (SELECT count(*) FROM rota.archived_jobs AS o WHERE o.id = known.id) <> 1
"""
OPEN = "SELECT id, reprocessed_as FROM rota.dead_jobs WHERE review = 'reprocessing'"


class Ages:
    """A clock of the past that runs on: what ends by it is old at once for the purge, which has the real one."""

    def __init__(self) -> None:
        self.began = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.began - timedelta(days=40) + (datetime.now(UTC) - self.began)


class Town:
    """Workers and operators who live forty days ago, and a janitor of today."""

    def __init__(self, url: str, seed: int, seconds: float) -> None:
        self.url, self.chance = url, random.Random(seed)
        self.end = asyncio.get_running_loop().time() + seconds
        self.past = PostgresStore(url, clock=Ages())
        self.today = PostgresStore(url)
        self.known: set = set()
        self.ended: list[Job] = []
        self.dead: list[Job] = []
        self.keys: set[str] = set()
        self.purged = 0

    def open(self) -> bool:
        return asyncio.get_running_loop().time() < self.end

    async def work(self) -> None:
        session = await a_session(self.past, lease=1e6)
        while self.open():
            new = [a_job(payload={"n": self.chance.random()}) for _ in range(20)]
            await self.past.enqueue(new)
            self.known |= {job.id for job in new}
            jobs = await self.past.claim(Wanted(20), session=session)
            ends = [
                self.chance.choice((completed, cancelled, lambda job: failed(job, ErrorClass.NON_RETRYABLE)))(
                    job
                )
                for job in jobs
            ]
            await self.past.settle(ends)
            for move in ends:
                (self.dead if move.to is State.DEAD else self.ended).append(move.job)

    async def operate(self) -> None:
        """Cancelled jobs are revived, dead ones reviewed and reprocessed, while the purge may want them."""
        while self.open():
            await asyncio.sleep(0)
            if self.ended:
                job = self.ended.pop(self.chance.randrange(len(self.ended)))
                for seen in await self.past.get([job.id]):
                    if seen.state is State.CANCELLED:
                        await by_hand(self.past, seen, Verb.RETRY)
            if not self.dead:
                continue
            job = self.dead.pop(self.chance.randrange(len(self.dead)))
            for seen in await self.past.get([job.id]):
                if seen.state is not State.DEAD or seen.review != "pending_review":
                    continue
                if self.chance.random() < 0.5:
                    await reviewed(self.past, seen, ReviewVerb.ACKNOWLEDGE)
                    self.dead.append(seen)
                    continue
                try:
                    answer, new = await reprocessed(self.past, seen)
                except NotUnique:
                    continue
                if answer.landed == "applied":
                    self.known.add(new.id)

    async def reprocess_what_was_closed(self) -> None:
        """Just what the purge wants, too: letters that were acknowledged."""
        while self.open():
            await asyncio.sleep(0)
            for job in list(self.dead[-5:]):
                for seen in await self.past.get([job.id]):
                    if seen.review == "acknowledged":
                        new = a_job(id=uuid4(), parent_id=seen.id)
                        change = change_of(seen, ReviewVerb.REPROCESS)
                        if (await self.past.reprocess(change, new, [])).landed == "applied":
                            self.known.add(new.id)

    async def review(self) -> None:
        while self.open():
            await self.past.settle_reviews()
            await asyncio.sleep(0.05)

    async def hold_keys(self) -> None:
        """Each key is enqueued again and again: its window is long, so it makes one job, archived or not."""
        while self.open():
            key = f"order:{self.chance.randrange(50)}"
            new = a_job(key=key, key_window=1e7)
            [answer] = await self.past.enqueue([new])
            wanted = Stored.DUPLICATE if key in self.keys else Stored.CREATED
            assert answer.stored is wanted, f"{key} was {answer.stored}: its window was not respected"
            self.keys.add(key)
            self.known.add(answer.id)
            await asyncio.sleep(0)

    async def watch(self) -> None:
        """At any moment an open reprocess has both its sides."""
        async with await psycopg.AsyncConnection.connect(self.url, autocommit=True) as connection:
            while self.open():
                missing = await connection.execute(
                    f"SELECT d.id FROM ({OPEN}) AS d WHERE NOT EXISTS "
                    "(SELECT FROM rota.all_jobs AS j WHERE j.id = d.reprocessed_as)"
                )
                assert await missing.fetchall() == [], "the job of an open reprocess was purged"
                await asyncio.sleep(0.01)

    async def purge(self) -> None:
        while self.open():
            self.purged += (await self.today.prune(EVERYTHING, Retention())).jobs
            await asyncio.sleep(0)


@pytest.mark.chaos
@pytest.mark.scenario(20)
@pytest.mark.timeout(300)
async def test_a_purge_beside_claims_reprocessing_and_keys_loses_nothing_and_takes_nothing_early(
    direct_database, one_seed, long, monkeypatch
):
    monkeypatch.setattr(retention, "REST", 0.0)
    monkeypatch.setattr(retention, "BLOCKS", 2)
    town = Town(direct_database, one_seed, 60.0 if long else 5.0)
    await town.today.set_policy(Policy(0.0, set_by="ann"), Audit("ann", "retention_set", None))
    async with asyncio.TaskGroup() as group:
        for doing in (
            town.work(), town.work(), town.operate(), town.operate(), town.reprocess_what_was_closed(),
            town.review(), town.hold_keys(), town.watch(), town.purge(),
        ):  # fmt: skip
            group.create_task(doing)

    with psycopg.connect(direct_database) as connection:
        assert connection.execute(LOST, [list(town.known)]).fetchall() == []
        doubled = connection.execute("SELECT id FROM rota.archived_jobs GROUP BY 1 HAVING count(*) > 1")
        assert doubled.fetchall() == []
        [[archived]] = connection.execute("SELECT count(*) FROM rota.archived_jobs").fetchall()
    assert archived == town.purged > 50
    await town.past.close()
    await town.today.close()
