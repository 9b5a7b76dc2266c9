"""OpenTelemetry: who enqueued a job and who ran it, as two spans with a link."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rota import Retry, Rota
from rota.config import Settings
from rota.contrib.otel import instrument
from rota.stores.memory import MemoryStore
from rota.stores.postgres import PostgresStore
from rota.worker import Worker


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(spans) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return provider


@pytest.fixture(params=["memory", "postgres"])
async def app(request, provider) -> AsyncIterator[Rota]:
    """On each store, by its own clock."""
    postgres = request.param == "postgres"
    store = PostgresStore(request.getfixturevalue("fresh_database")) if postgres else MemoryStore()
    app = Rota(store=store, settings=Settings.load(url="memory://", poll=0.02, idle_poll=0.05))
    instrument(app, tracer_provider=provider)
    yield app
    await app.close()


async def run(app: Rota, *handles) -> None:
    """A worker runs until these have ended."""
    import asyncio

    worker = Worker(app, lanes={"general": 2})
    working = asyncio.create_task(worker.run())
    for handle in handles:
        while not (await handle.status()).terminal:
            await asyncio.sleep(0.01)
    worker.stop()
    await working


def named(spans: InMemorySpanExporter) -> dict[str, object]:
    return {span.name: span for span in spans.get_finished_spans()}


async def test_the_span_of_a_run_is_linked_to_the_span_that_enqueued_it(app, spans, provider):
    seen = []

    @app.task(queue="mail")
    async def send(to: str) -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    with provider.get_tracer("web").start_as_current_span("POST /order") as request:
        handle = await send.enqueue("ann")
    await run(app, handle)

    found = named(spans)
    sent, processed = found["send mail"], found["process mail"]
    assert sent.parent.span_id == request.get_span_context().span_id
    assert (sent.kind, processed.kind) == (trace.SpanKind.PRODUCER, trace.SpanKind.CONSUMER)
    assert [link.context.span_id for link in processed.links] == [sent.context.span_id]
    assert processed.parent is None
    assert processed.context.trace_id != sent.context.trace_id
    assert seen == [processed.context.span_id]
    assert processed.attributes["messaging.system"] == "rota"
    assert processed.attributes["messaging.destination.name"] == "mail"
    assert (
        processed.attributes["messaging.message.id"]
        == sent.attributes["messaging.message.id"]
        == str(handle.id)
    )


async def test_a_run_that_fails_says_with_what(app, spans):
    @app.task(retry=Retry(attempts=1))
    async def broken() -> None:
        raise ValueError("no")

    await run(app, await broken.enqueue())

    span = named(spans)["process default"]
    assert span.attributes["error.type"] == "ValueError"
    assert not span.status.is_ok


async def test_many_rows_are_one_span_and_each_job_carries_it(app, spans):
    @app.task
    async def quick(number: int) -> None: ...

    handles = list(await quick.enqueue_many(range(3)))
    await run(app, *handles)

    [sent] = [span for span in spans.get_finished_spans() if span.name.startswith("send ")]
    runs = [span for span in spans.get_finished_spans() if span.name == "process default"]
    assert [span.links[0].context.span_id for span in runs] == [sent.context.span_id] * 3


async def test_a_plain_function_runs_inside_its_span_too(app, spans):
    seen = []

    @app.task
    def plain() -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    await run(app, await plain.enqueue())

    assert seen == [named(spans)["process default"].context.span_id]


async def test_instrumenting_twice_traces_once(app, spans, provider):
    instrument(app, tracer_provider=provider)

    @app.task
    async def quick() -> None: ...

    await run(app, await quick.enqueue())

    assert len(spans.get_finished_spans()) == 2


async def test_a_job_of_somebody_who_does_not_trace_has_no_link(app, spans):
    @app.task
    async def quick() -> None: ...

    store = app.store._store
    from build import a_job

    job = a_job("quick")
    await store.enqueue([job])
    await run(app, app.job(job.id))

    assert named(spans)["process default"].links == ()
