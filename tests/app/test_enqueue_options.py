"""Everything that can be said of one job, and what wrong options are told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from rota import State, UnknownTask
from rota.errors import TaskError


@pytest.fixture
def send(app):
    @app.task(priority=80, timeout="2m", tags=["mail"], category="sync", retry=4)
    async def send(to: str) -> None: ...

    return send


async def stored(handle):
    return await handle.refresh()


async def test_an_enqueued_job_is_stored_with_the_defaults_of_its_task(send):
    job = await stored(await send.enqueue("a@b.c"))

    assert (job.task, job.payload, job.state) == ("send", {"to": "a@b.c"}, State.PENDING)
    assert (job.queue, job.priority, job.timeout, job.max_attempts) == ("default", 80, 120.0, 4)
    assert (job.tags, job.category, job.payload_version, job.attempt) == (("mail",), "sync", "1.0", 0)


@pytest.mark.req("D13", "D24", "L9")
async def test_options_of_one_job_win_over_those_of_its_task(send):
    handle = await send.using(
        queue="fast", priority=7, subject="site:12", created_by="server-api", max_attempts=9, timeout=5,
        tags=["a", "b"], category="export", external_id="x-1", tenant="acme", key="k-1", deadline="1h",
    ).enqueue("a@b.c")  # fmt: skip

    job = await stored(handle)

    assert (job.queue, job.priority, job.subject, job.created_by) == ("fast", 7, "site:12", "server-api")
    assert (job.max_attempts, job.timeout, job.tags, job.category) == (9, 5.0, ("a", "b"), "export")
    assert (job.external_id, job.tenant, job.key) == ("x-1", "acme", "k-1")
    assert job.deadline == job.created_at + timedelta(hours=1)


@pytest.mark.req("L9")
async def test_without_a_word_the_priority_is_one_hundred(app):
    @app.task
    async def plain() -> None: ...

    assert (await stored(await plain.enqueue())).priority == 100


@pytest.mark.req("L10")
async def test_a_delayed_job_is_due_later(app, send, work, clock):
    await send.using(delay="5m").enqueue("a@b.c")
    assert await work(app) == []
    clock.advance(299)
    assert await work(app) == []
    clock.advance(1)

    assert [job.payload["to"] for job in await work(app)] == ["a@b.c"]


@pytest.mark.req("L10")
async def test_a_job_may_name_the_moment_it_is_due(app, send, work, clock):
    await send.using(at=clock.now + timedelta(hours=1)).enqueue("a@b.c")
    assert await work(app) == []
    clock.advance(3600)

    assert len(await work(app)) == 1


async def test_options_may_be_added_step_by_step_and_the_last_word_counts(send):
    later = send.using(queue="slow", delay="5m", tenant="acme")

    job = await stored(await later.using(queue="fast", at=datetime(2100, 1, 1, tzinfo=UTC)).enqueue("a"))

    assert (job.queue, job.tenant, job.run_at) == ("fast", "acme", datetime(2100, 1, 1, tzinfo=UTC))


async def test_using_leaves_the_task_itself_as_it_was(send):
    send.using(queue="slow")

    assert (await stored(await send.enqueue("a"))).queue == "default"


@pytest.mark.req("L8")
async def test_enqueue_by_name_checks_the_arguments_like_a_call(app, send):
    handle = await app.enqueue("send", {"to": "a@b.c"}, priority=3, correlation_id="c-1")

    job = await stored(handle)
    assert (job.payload, job.priority, job.correlation_id) == ({"to": "a@b.c"}, 3, "c-1")
    with pytest.raises(ValueError, match="argument 'to' is missing"):
        await app.enqueue("send", {})


@pytest.mark.req("L8")
async def test_an_unknown_task_is_refused_and_the_nearest_name_offered(app, send):
    with pytest.raises(UnknownTask) as refused:
        await app.enqueue("sned", {"to": "a@b.c"})

    assert "no task named 'sned' is registered here (1 are); did you mean 'send'?" in str(refused.value)
    assert "Import the module that defines it" in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"que": "x"}, r"using\(\) has no option 'que'; did you mean 'queue'\?"),
        ({"colour": "x"}, r"using\(\) has no option 'colour'. Known are: queue, priority, delay"),
        ({"delay": "5m", "at": datetime(2100, 1, 1, tzinfo=UTC)}, "delay and at were both given"),
        ({"at": datetime(2100, 1, 1)}, "at 2100-01-01T00:00:00 has no time zone"),
        ({"at": "tomorrow"}, "at must be a datetime, not 'tomorrow'; use delay for a duration"),
        ({"delay": "soon"}, "delay 'soon' is not understood"),
        ({"delay": -1}, "delay must be 0 or more"),
        ({"queue": ""}, "queue must not be empty"),
        ({"key": 7}, r"key must be a text, not 7. Write str\(...\) around it"),
        ({"key": "a\x00"}, "key 'a.x00' contains a NUL character"),
        ({"key": "\ud800"}, "contains a lone surrogate"),
        (
            {"subject": "x" * 1001},
            "subject has 1001 bytes; at most 1000 are allowed. Use a hash or an id of it",
        ),
        ({"tags": "urgent"}, r"tags must be a list of texts, not 'urgent'. Write \['urgent'\] for one tag"),
        ({"priority": 100_000}, "priority 100000 is not a whole number"),
        ({"max_attempts": 0}, "max_attempts 0 is not a whole number from 1 to 32767"),
        ({"parent": 7}, "parent must be a job id, a handle or a job, not 7"),
        ({"parent": "nonsense"}, "'nonsense' is not a job id"),
        ({"unique": 7}, "unique must be a text, not 7"),
    ],
)
def test_a_wrong_option_says_which_and_what_to_write(memory_app, options, message):
    @memory_app.task
    def send() -> None: ...

    with pytest.raises((TypeError, ValueError), match=message):
        send.using(**options)


def test_a_function_as_unique_belongs_into_the_decorator(memory_app):
    from rota import Unique

    @memory_app.task
    def send() -> None: ...

    with pytest.raises(TypeError, match=r"needs the key itself as a text.*functions belong in @app.task"):
        send.using(unique=Unique(lambda: "x"))


def test_an_option_error_is_a_task_error(memory_app):
    @memory_app.task
    def send() -> None: ...

    with pytest.raises(TaskError):
        send.using(nonsense=1)


async def test_an_id_is_a_uuid_of_version_seven_and_later_jobs_have_greater_ones(memory_app):
    @memory_app.task
    def send() -> None: ...

    ids: list[UUID] = [send.prepare((), {}).id for _ in range(20_000)]

    assert {job_id.version for job_id in ids} == {7}
    assert ids == sorted(set(ids))
