"""OpenTelemetry: a span where a job is enqueued, one where it runs, and a link between them. Needs the extra `otel`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rota.errors import ConfigError

if TYPE_CHECKING:
    from uuid import UUID

    from opentelemetry.trace import Tracer, TracerProvider

    from rota._core.job import NewJob, Row
    from rota.app import Rota
    from rota.current import RunningJob
    from rota.stores.contract import Enqueued, Store

SYSTEM = "rota"


def instrument(app: Rota, *, tracer_provider: TracerProvider | None = None) -> None:
    """Trace the jobs of this app. Call it once, before workers start: `instrument(app)`.

    What is enqueued gets a producer span `send QUEUE`, and carries its context
    in the job's headers. A run gets a consumer span `process QUEUE` of a trace of
    its own, linked to the one that enqueued it: a job may run days later.
    """
    if any(isinstance(layer, _Consumer) for layer in app.middleware):
        return
    tracer = _api().trace.get_tracer("rota", tracer_provider=tracer_provider)
    app.middleware.insert(0, _Consumer(tracer))
    app._store = cast("Store", _Producer(app.store, tracer))  # noqa: SLF001 - the one place where a store is wrapped later


class _Producer:
    """A store that traces what is enqueued; everything else goes straight through."""

    def __init__(self, store: Store, tracer: Tracer) -> None:
        self._store, self._tracer = store, tracer

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        with self._sending(jobs):
            return await self._store.enqueue(list(_carrying(jobs)))

    def enqueue_within(self, tx: Any, jobs: Sequence[NewJob]) -> Any:
        with self._sending(jobs):
            return cast("Any", self._store).enqueue_within(tx, list(_carrying(jobs)))

    @property
    def enqueue_stream(self) -> Callable[[NewJob, Iterable[Row]], Awaitable[list[UUID]]]:
        # A property: asking for it says whether the store can, as with the store itself.
        stream: Callable[[NewJob, Iterable[Row]], Awaitable[list[UUID]]] = cast(
            "Any", self._store
        ).enqueue_stream

        async def traced(like: NewJob, rows: Iterable[Row]) -> list[UUID]:
            with self._sending(()):
                [carrying] = _carrying([like])
                return await stream(carrying, rows)

        return traced

    def _sending(self, jobs: Sequence[NewJob]) -> Any:
        queues = {job.queue for job in jobs}
        queue = queues.pop() if len(queues) == 1 else None
        said: dict[str, Any] = {"messaging.system": SYSTEM, "messaging.operation.type": "send"}
        if queue is not None:
            said["messaging.destination.name"] = queue
        if len(jobs) == 1:
            said |= {"messaging.message.id": str(jobs[0].id), "rota.task": jobs[0].task}
        elif jobs:
            said["messaging.batch.message_count"] = len(jobs)
        kind = _api().trace.SpanKind.PRODUCER
        return self._tracer.start_as_current_span(f"send {queue or 'jobs'}", kind=kind, attributes=said)


class _Consumer:
    """Middleware: one span around each run."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    async def __call__(self, running: RunningJob, call_next: Callable[[], Awaitable[Any]]) -> Any:
        trace, job = _api().trace, running.job
        said: dict[str, Any] = {
            "messaging.system": SYSTEM,
            "messaging.operation.type": "process",
            "messaging.destination.name": job.queue,
            "messaging.message.id": str(job.id),
            "messaging.message.conversation_id": job.correlation,
            "rota.task": job.task,
            "rota.attempt": job.attempt,
        }
        context = _api().context.Context()  # a trace of its own, whatever the worker is in
        with self._tracer.start_as_current_span(
            f"process {job.queue}",
            context=context,
            kind=trace.SpanKind.CONSUMER,
            attributes=said,
            links=_links(job.headers_json),
            record_exception=True,
        ) as span:
            try:
                return await call_next()
            except BaseException as error:
                span.set_attribute("error.type", type(error).__qualname__)
                raise


def _carrying(jobs: Iterable[NewJob]) -> Iterable[NewJob]:
    """The same jobs with the span that is current now in their headers."""
    carrier: dict[str, str] = {}
    _api().propagate.inject(carrier)
    for job in jobs:
        if carrier:
            headers: Mapping[str, Any] = json.loads(job.headers_json) if job.headers_json else {}
            yield job._replace(headers_json=json.dumps({**headers, **carrier}))
        else:
            yield job


def _links(headers_json: str | None) -> list[Any]:
    trace = _api().trace
    headers: dict[str, Any] = json.loads(headers_json) if headers_json else {}
    carrier = {name: value for name, value in headers.items() if isinstance(value, str)}
    found = trace.get_current_span(_api().propagate.extract(carrier, _api().context.Context()))
    context = found.get_span_context()
    return [trace.Link(context)] if context.is_valid else []


def _api() -> Any:
    try:
        import opentelemetry.context
        import opentelemetry.propagate
        import opentelemetry.trace
    except ImportError as error:
        raise ConfigError(
            "OpenTelemetry is not installed, so nothing can be traced. Install it with `pip install 'rota[otel]'`."
        ) from error
    return opentelemetry
