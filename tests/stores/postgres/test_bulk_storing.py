"""Many jobs in one call: as exact as one by one, all or nothing, and safe to send again."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from build import a_job, claim, completed, new_id, read
from rota._core.job import Job, NewJob
from rota.errors import PayloadInvalid
from rota.stores.contract import Enqueued, JobFilter, Stored, Wanted
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.enqueue import COPY_FROM

NASTY = {
    "tab": "a\tb",
    "line": "a\nb\r\nc\r",
    "backslash": "a\\b\\",
    "escapes": "\\t \\n \\N \\. \\x41 \\101",
    "null": "\\N",
    "end": "\\.",
    "word": "NULL",
    "quotes": "\"double\" 'single' `back`",
    "braces": '{a,"b",{c}}',
    "percent": "%s %(x)s %% $1 :name",
    "unicode": "ünïcödé 中文 😀 \u2028 \u00a0 \u200b",
    "control": "\x01\x08\x0b\x0c\x1f\x7f",
    "spaces": "  a  ",
    "empty": "",
}
VARIED = ("id", "created_at", "updated_at", "run_at", "deadline")


def a_nasty_job(text: str, **options: Any) -> NewJob:
    """A job with one text in every place that takes text."""
    payload = {text: text, "list": [text, {"deep": text}], "number": 1.5, "none": None, "true": True}
    return a_job(
        f"task {text}", payload, queue=f"queue {text}", tenant=text, subject=text, external_id=text, gate=text,
        correlation_id=text, tags=(text, "plain", f"{text},{text}"), created_by=text, category=text,
        payload_version=text, headers_json=json.dumps({text: text}), parent_id=new_id(), priority=7, max_attempts=3,
        timeout=1.5, **options,
    )  # fmt: skip


def alike(job: NewJob) -> NewJob:
    """The same job under another id."""
    return job._replace(id=new_id())


def told(job: Job) -> dict[str, Any]:
    """What a job says of itself, times apart; JSON as values, because PostgreSQL writes it in its own way."""
    fields = {name: value for name, value in job._asdict().items() if name not in VARIED}
    return fields | {"payload_json": job.payload, "headers_json": json.loads(job.headers_json or "null")}


async def stored(store: PostgresStore, jobs: list[NewJob]) -> list[dict[str, Any]]:
    return [told(job) for job in await store.get([job.id for job in jobs])]


def filled(jobs: list[NewJob]) -> list[NewJob]:
    """Enough jobs to make the call a bulk."""
    return jobs + [a_job() for _ in range(COPY_FROM)]


async def test_every_text_arrives_exactly_by_every_way(store, fresh_database):
    one_by_one = [a_nasty_job(text) for text in NASTY.values()]
    few, many, keyed, within = ([alike(job) for job in one_by_one] for _ in range(4))
    keyed = [job._replace(unique_key=f"key {text}") for job, text in zip(keyed, NASTY.values(), strict=True)]

    for job in one_by_one:
        await store.enqueue([job])
    await store.enqueue(few)
    await store.enqueue(filled(many))
    await store.enqueue(keyed)
    async with store._desks().connections.connection() as connection, connection.transaction():
        await store.enqueue_within(connection, within)

    first = await stored(store, one_by_one)
    for text, fields in zip(NASTY.values(), first, strict=True):
        assert (fields["task"], fields["queue"], fields["tenant"]) == (f"task {text}", f"queue {text}", text)
        assert fields["tags"] == (text, "plain", f"{text},{text}")
        assert fields["payload_json"][text] == text
        assert fields["payload_json"]["list"] == [text, {"deep": text}]
        assert fields["headers_json"] == {text: text}
    assert await stored(store, few) == first
    assert await stored(store, many) == first
    assert await stored(store, within) == first
    keys = {"unique_key": None, "unique_scope": None}
    assert [fields | keys for fields in await stored(store, keyed)] == first


async def test_times_of_a_bulk_are_those_of_single_jobs(store):
    moment = datetime(2031, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)
    bulk = [a_job(delay=90.5), a_job(run_at=moment), a_job(deadline_in=30.25), a_job(held=True), a_job()]
    await store.enqueue(filled(bulk))

    delayed, dated, hurried, held, plain = await store.get([job.id for job in bulk])
    assert (delayed.run_at - delayed.created_at).total_seconds() == 90.5
    assert dated.run_at == moment
    assert (hurried.deadline - hurried.created_at).total_seconds() == 30.25
    assert held.state == "held"
    assert plain.run_at == plain.created_at == delayed.created_at
    assert abs((await store.now() - plain.created_at).total_seconds()) < 30


async def test_neighbours_in_a_bulk_do_not_inherit_from_each_other(store):
    """What is alike is written once and used again; what differs must not be."""
    variations: list[dict[str, Any]] = [
        {}, {"queue": "mail"}, {}, {"tenant": "acme"}, {"tags": ("a",)}, {"priority": 3}, {"delay": 60.0}, {},
        {"timeout": 2.0}, {"gate": "g"}, {"held": True}, {"max_attempts": 9}, {},
    ]  # fmt: skip
    bulk = [a_job(f"task{number % 2}", **options) for number, options in enumerate(variations)]
    single = [alike(job) for job in bulk]

    await store.enqueue(filled(bulk))
    for job in single:
        await store.enqueue([job])

    assert await stored(store, bulk) == await stored(store, single)


@pytest.mark.slow
async def test_fifty_thousand_jobs_in_one_call_and_again_after_some_are_done(store):
    jobs = [a_job("email", {"number": number}, tags=("bulk",)) for number in range(50_000)]
    created = [Enqueued(job.id, Stored.CREATED) for job in jobs]

    assert await store.enqueue(jobs) == created
    taken = await claim(store, wanted=Wanted(500))
    await store.settle([completed(job) for job in taken])
    assert await store.enqueue(jobs) == created

    async with store._desks().connections.connection() as connection:
        row = await (
            await connection.execute(
                "SELECT count(*), count(DISTINCT payload), count(*) FILTER (WHERE tags = '{bulk}') FROM rota.all_jobs"
            )
        ).fetchone()
        unfinished = await (await connection.execute("SELECT count(*) FROM rota.jobs")).fetchone()
    assert row == (50_000, 50_000, 50_000)
    assert unfinished == (49_500,)


async def test_a_bulk_of_which_another_process_stored_a_part_is_completed(store, fresh_database):
    other = PostgresStore(fresh_database)
    earlier = [a_job() for _ in range(300)]
    await other.enqueue(earlier)
    await other.close()
    new = [a_job() for _ in range(300)]

    answers = await store.enqueue(new[:150] + earlier[100:] + new[150:])

    assert all(answer.created for answer in answers)
    assert {job.id for job in await store.find(JobFilter(limit=1000))} == {job.id for job in earlier + new}


async def test_the_same_id_twice_in_one_bulk_is_one_job(store):
    jobs = [a_job() for _ in range(250)]

    answers = await store.enqueue([*jobs, jobs[7]])

    assert all(answer.created for answer in answers)
    assert len(await store.find(JobFilter(limit=1000))) == 250


async def test_one_job_that_cannot_be_stored_refuses_its_bulk_as_a_whole(store):
    bad = a_job()._replace(payload_json='{"text": "a\\u0000b"}')

    with pytest.raises(PayloadInvalid) as refused:
        await store.enqueue([*[a_job() for _ in range(300)], bad])

    assert str(refused.value).startswith("PostgreSQL cannot store this job: ")
    assert str(refused.value).endswith("Nothing was stored; correct the value.")
    assert await store.find(JobFilter()) == []
    await store.enqueue([a_job() for _ in range(300)])
    assert len(await store.find(JobFilter(limit=1000))) == 300


async def test_one_that_cannot_be_stored_does_not_harm_those_that_travel_with_it(store):
    bad = a_job()._replace(payload_json='{"text": "a\\u0000b"}')
    good = [a_job() for _ in range(20)]

    answers = await asyncio.gather(
        *[store.enqueue([job]) for job in [*good[:10], bad, *good[10:]]], return_exceptions=True
    )

    assert [type(answer) for answer in answers if not isinstance(answer, list)] == [PayloadInvalid]
    assert {job.id for job in await store.find(JobFilter())} == {job.id for job in good}
    assert (await read(store, good[0])).attempt == 0


async def test_a_stream_of_which_another_process_stored_a_part_is_completed(store, fresh_database):
    other = PostgresStore(fresh_database)
    like = a_job("email", queue="mail", tenant="acme")
    rows = [(new_id(), json.dumps({"number": number})) for number in range(700)]
    await other.enqueue([like._replace(id=rows[650][0], payload_json=rows[650][1])])
    await other.close()

    ids = await store.enqueue_stream(like, iter(rows))

    found = await store.find(JobFilter(limit=1000))
    assert ids == [id_ for id_, _ in rows]
    assert {job.id: job.payload for job in found} == {id_: json.loads(text) for id_, text in rows}
    assert {(job.task, job.queue, job.tenant) for job in found} == {("email", "mail", "acme")}


async def test_a_stream_that_breaks_off_stores_nothing(store):
    def rows():
        for _ in range(900):
            yield new_id(), "{}"
        raise RuntimeError("the source is broken")

    with pytest.raises(RuntimeError, match="the source is broken"):
        await store.enqueue_stream(a_job(), rows())

    assert await store.find(JobFilter()) == []


async def test_others_have_their_turn_while_a_stream_is_stored(store):
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await store.enqueue_stream(a_job(), ((new_id(), "{}") for _ in range(10_000)))
    beside.cancel()

    assert turns >= 40
