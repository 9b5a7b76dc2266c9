"""What every store says of itself and of what takes room in it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from build import NOON, Clock, a_job, claim, completed
from rota._core.room import RoomSample
from rota.stores.contract import Retention, Store
from rota.stores.postgres.migrate import LATEST


async def test_a_store_says_what_it_is_and_what_its_tables_take(store: Store):
    await store.enqueue([a_job() for _ in range(20)])
    await store.settle([completed(job) for job in await claim(store)])

    room = await store.room()

    if room.kind == "memory":
        assert room == room.__class__("memory")  # it has no server, no tables and no schema
        return
    assert (room.kind, room.schema, room.needed, room.read_only) == ("PostgreSQL", LATEST, LATEST, False)
    assert (room.version or "")[0].isdigit()
    assert (room.size or 0) > 100_000
    assert 1 <= (room.connections or 0) <= (room.most_connections or 0)
    tables = {table.name: table for table in room.tables}
    assert tables["finished_jobs"].parts > 0
    assert tables["jobs"].parts == 0
    assert tables["jobs"].indexes > 0
    assert [table.bytes for table in room.tables] == sorted(
        (table.bytes for table in room.tables), reverse=True
    )


async def test_there_is_one_sample_of_the_room_in_five_minutes_whoever_looks(store: Store, clock: Clock):
    """Keep what takes room now; False: somebody did in these five minutes, or there is nothing to measure."""
    noted = await asyncio.gather(*[store.note_room() for _ in range(4)])
    clock.advance(240)
    again = await store.note_room()
    clock.advance(60)
    later = await store.note_room()

    found = await store.room_series(900.0, 300.0)
    if (await store.room()).kind == "memory":
        assert (noted, again, later, found) == ([False] * 4, False, False, [])
        return
    assert (sum(noted), again, later) == (1, False, True)
    assert [one.start for one in found] == [NOON + timedelta(minutes=number) for number in (-10, -5, 0, 5)]
    assert [one.bytes is None for one in found] == [True, True, False, False]
    assert found[0] == RoomSample(NOON - timedelta(minutes=10))
    assert (found[2].bytes or 0) > 100_000
    assert found[2].dead is not None
    assert (found[2].oldest_transaction or 0.0) >= 0.0


async def test_a_longer_slice_shows_the_most_of_its_samples(store: Store, clock: Clock):
    for _ in range(3):
        await store.note_room()
        clock.advance(300)

    found = await store.room_series(7200.0, 3600.0)

    if found:
        assert [one.bytes is None for one in found] == [True, True, False]


async def test_samples_of_the_room_are_kept_for_thirty_days(store: Store, clock: Clock):
    await store.note_room()
    clock.advance(29 * 86_400)
    await store.tidy(Retention())
    kept = await store.room_series(30 * 86_400.0, 86_400.0)
    clock.advance(2 * 86_400)
    await store.tidy(Retention())
    gone = await store.room_series(60 * 86_400.0, 86_400.0)

    if kept:
        assert sum(one.bytes is not None for one in kept) == 1
        assert all(one.bytes is None for one in gone)
