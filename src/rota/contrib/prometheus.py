"""What Prometheus scrapes: the store's numbers in its format. Needs the extra `prometheus`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rota.errors import ConfigError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from rota.admin.numbers import Overview

WINDOW = 300.0
"""Seconds that rates and percentiles are about."""
SHARES = (("0.5", 0.5), ("0.95", 0.95), ("0.99", 0.99))


def exposition(seen: Overview) -> tuple[bytes, str]:
    """The page and its content type. What could not be read has no series: unknown is not zero."""
    prometheus = _library()
    registry = prometheus.CollectorRegistry()
    registry.register(_Once(seen))
    page: bytes = prometheus.exposition.generate_latest(registry)
    return page, prometheus.exposition.CONTENT_TYPE_LATEST


class _Once:
    """One look at the store, as a collector. No tenant is in it: whoever reads metrics may belong to none."""

    def __init__(self, seen: Overview) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        yield from self._of_queues()
        yield from self._of_attempts()
        yield from self._of_workers()
        parts = ("counts", "heads", "figures", "workers", "targets")
        yield _gauge(
            "rota_read_ok",
            "Whether this part of the numbers could be read; where it is 0, its series are missing.",
            ("part",),
            [((part,), 0.0 if part in self._seen.unknown else 1.0) for part in parts],
        )

    def _of_queues(self) -> Iterator[Metric]:
        seen = self._seen
        if seen.counts is not None:
            found = [((each.queue, each.task, each.state.value), float(each.jobs)) for each in seen.counts]
            text = "Unfinished and dead jobs; counted up to 100,000 of each."
            yield _gauge("rota_jobs", text, ("queue", "task", "state"), found)
        if seen.heads is not None:
            ages = [
                ((head.queue,), max(0.0, (seen.now - head.oldest).total_seconds())) for head in seen.heads
            ]
            yield _gauge("rota_queue_oldest_seconds", "How long the oldest due job waits.", ("queue",), ages)
        if seen.targets is not None:
            targets = [((name,), target) for name, target in seen.targets.items() if target is not None]
            yield _gauge(
                "rota_queue_target_seconds", "How long a due job should wait at most.", ("queue",), targets
            )

    def _of_attempts(self) -> Iterator[Metric]:
        figures = self._seen.figures
        if figures is None:
            return
        ended = [((each.queue, each.task, each.ending), float(each.jobs)) for each in figures.totals]
        yield _gauge(
            "rota_attempts_recent",
            f"Attempts that ended in the last {WINDOW:.0f} seconds.",
            ("queue", "task", "ending"),
            ended,
        )
        for name, text, which in (
            ("rota_wait_seconds", "From being due to being claimed, of late.", "wait"),
            ("rota_run_seconds", "From the claim to the end, of late.", "run"),
        ):
            found = [
                ((task, label), length)
                for task, summary in figures.by_task().items()
                for label, share in SHARES
                if (length := getattr(summary, which)(share)) is not None
            ]
            yield _gauge(name, text, ("task", "quantile"), found)
        rates = [
            ((task,), rate)
            for task, summary in figures.by_task().items()
            if (rate := summary.error_rate) is not None
        ]
        yield _gauge("rota_error_ratio", "The share of attempts that failed, of late.", ("task",), rates)
        lanes = [((lane.lane,), used) for lane in figures.lanes if (used := lane.used) is not None]
        yield _gauge("rota_lane_busy_ratio", "The share of a lane's slots that was busy.", ("lane",), lanes)

    def _of_workers(self) -> Iterator[Metric]:
        workers = self._seen.workers
        if workers is not None:
            yield _gauge("rota_workers", "Living workers.", (), [((), float(len(workers)))])
            slots = float(sum(worker.slots for worker in workers))
            yield _gauge("rota_slots", "Slots of living workers.", (), [((), slots)])
            used = [
                ((worker.host, str(worker.pid)), float(worker.memory))
                for worker in workers
                if worker.memory is not None
            ]
            text = "Memory that the process of a living worker uses."
            yield _gauge("rota_worker_memory_bytes", text, ("host", "pid"), used)


def _gauge(
    name: str, text: str, labels: tuple[str, ...], values: Sequence[tuple[tuple[str, ...], float]]
) -> Metric:
    family: Metric = _library().core.GaugeMetricFamily(name, text, labels=labels)
    for label, value in values:
        family.add_metric(label, value)  # type: ignore[attr-defined]
    return family


def _library() -> Any:
    try:
        import prometheus_client
        import prometheus_client.core
        import prometheus_client.exposition
    except ImportError as error:
        raise ConfigError(
            "prometheus_client is not installed, so there are no metrics. Install it with "
            "`pip install 'rota[prometheus]'`."
        ) from error
    return prometheus_client
