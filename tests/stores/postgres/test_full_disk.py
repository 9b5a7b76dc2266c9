"""A full disk: the caller hears of it, nothing acknowledged is lost, and the same store goes on when there is space."""

from __future__ import annotations

import asyncio
import random
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psycopg
import pytest

import servers
from build import a_job, a_session, applied, claim, completed, read
from rota._core.job import NewJob, State
from rota.errors import StoreFull
from rota.stores.contract import JobFilter, Wanted
from rota.stores.postgres import PostgresStore


class Disk(Protocol):
    def fill(self) -> None: ...

    def free(self) -> None: ...


class SmallDisk:
    """A few megabytes of memory, mounted as a disk, with ballast to fill them."""

    def __init__(self, place: Path) -> None:
        self._ballast = place / "ballast"

    def fill(self) -> None:
        with suppress(OSError), self._ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


class SaidToBeFull:
    """Where we may not mount: the server answers just as if its disk were full, for every new row."""

    def __init__(self, url: str) -> None:
        self._url = url

    def fill(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(
                "CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
                "'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$"
            )
            for table in ("jobs", "finished_jobs", "keys"):
                connection.execute(
                    f"CREATE TRIGGER full_disk BEFORE INSERT ON rota.{table} FOR EACH ROW EXECUTE FUNCTION full_disk()"
                )

    def free(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("DROP FUNCTION IF EXISTS public.full_disk() CASCADE")


@pytest.fixture(scope="module")
def small(own_server: servers.Server) -> Iterator[tuple[str, Path | None]]:
    """The address of a database on a disk of 24 MB, and where that is mounted (None: nobody may mount here)."""
    place = own_server.own_directory("small")
    owner = place.stat()
    options = f"size=24m,mode=0700,uid={owner.st_uid},gid={owner.st_gid}"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    url = servers.with_database(own_server.url, "crowded")
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
        connection.execute("CREATE DATABASE crowded TABLESPACE small")
        try:
            yield url, place if mounted else None
        finally:
            connection.execute("DROP DATABASE crowded WITH (FORCE)")
            connection.execute("DROP TABLESPACE small")
            if mounted:
                subprocess.run(["umount", place], check=True)


@pytest.fixture
async def store(small: tuple[str, Path | None]) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(small[0])
    await store.migrate()
    yield store
    async with store._desks().connections.connection() as connection:
        await connection.execute("TRUNCATE rota.jobs, rota.finished_jobs, rota.keys")
    await store.close()


@pytest.fixture
def disk(small: tuple[str, Path | None], store: PostgresStore) -> Iterator[Disk]:
    url, place = small
    disk = SmallDisk(place) if place else SaidToBeFull(url)
    yield disk
    disk.free()


def a_bulky_job(**options: object) -> NewJob:
    """A job of some kilobytes that cannot be compressed: a few of them want new pages."""
    return a_job(payload={"noise": random.randbytes(3000).hex()}, **options)


async def stored(store: PostgresStore) -> set[object]:
    return {job.id for job in await store.find(JobFilter(limit=10_000))}


async def enqueue_until_full(
    store: PostgresStore, jobs_at_once: int, **options: object
) -> tuple[set[object], str]:
    """The ids of what was acknowledged, and what the first refusal said."""
    acknowledged: set[object] = set()
    for number in range(1000):
        named = {name: f"{value}:{number}" for name, value in options.items()}
        jobs = [a_bulky_job(**named) for _ in range(jobs_at_once)]
        try:
            answers = await store.enqueue(jobs)
        except StoreFull as full:
            return acknowledged, str(full)
        acknowledged |= {answer.id for answer in answers}
    raise AssertionError("the disk never filled")


async def test_the_message_says_that_nothing_was_written_and_what_to_free(store, disk, own_server):
    disk.fill()
    _, message = await enqueue_until_full(store, 1)

    assert message.startswith(
        f"PostgreSQL at 127.0.0.1:{own_server.port}, database 'crowded' has no disk space left (could not extend file"
    )
    assert message.endswith(
        "No space left on device). Nothing was written. Free space on its disk; workers go on by themselves then."
    )


@pytest.mark.parametrize("how", [{}, {"key": "order"}])
async def test_what_was_acknowledged_is_kept_and_the_rest_is_taken_when_there_is_space(store, disk, how):
    before = [a_job() for _ in range(5)]
    await store.enqueue(before)
    disk.fill()
    acknowledged, _ = await enqueue_until_full(store, 1, **how)
    expected = {job.id for job in before} | acknowledged
    assert await stored(store) == expected

    disk.free()
    late = a_bulky_job()
    await store.enqueue([late])

    assert await stored(store) == expected | {late.id}


async def test_a_bulk_that_did_not_fit_left_nothing_behind(store, disk):
    disk.fill()
    acknowledged, _ = await enqueue_until_full(store, 300)
    assert await stored(store) == acknowledged

    disk.free()
    again = [a_bulky_job() for _ in range(300)]
    await store.enqueue(again)

    assert await stored(store) == acknowledged | {job.id for job in again}


async def test_of_callers_that_travel_together_each_hears_of_it(store, disk):
    disk.fill()
    acknowledged, _ = await enqueue_until_full(store, 1)

    together = await asyncio.gather(
        *[store.enqueue([a_bulky_job()]) for _ in range(30)], return_exceptions=True
    )

    refused = [answer for answer in together if isinstance(answer, BaseException)]
    assert refused
    assert {type(refusal) for refusal in refused} == {StoreFull}
    kept = {answer[0].id for answer in together if not isinstance(answer, BaseException)}
    assert await stored(store) == acknowledged | kept


async def test_work_that_could_not_be_settled_is_settled_when_there_is_space(store, disk):
    jobs = [a_job() for _ in range(3)]
    await store.enqueue(jobs)
    session = await a_session(store, lease=600)
    running = await claim(store, session, Wanted(3))
    finished = [completed(job, random.randbytes(20_000).hex()) for job in running]
    disk.fill()

    with pytest.raises(StoreFull, match="Nothing was written"):
        await store.settle(finished)
    assert {(await read(store, job)).state for job in jobs} == {State.RUNNING}
    disk.free()

    assert await store.settle(finished) == [applied(job, State.COMPLETED) for job in running]
