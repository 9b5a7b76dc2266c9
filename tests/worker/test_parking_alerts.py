"""Alerts about parked tasks: whoever hears them cannot keep the worker from knowing what is parked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from build import a_stored_job
from rota._core.alert import Alert
from rota._core.failure import ErrorClass, Failure
from rota.stores.memory import MemoryStore
from rota.worker.chores import parking
from rota.worker.chores.parking import Parking


async def test_an_alert_that_is_never_heard_does_not_keep_the_worker_from_parking(monkeypatch, caplog):
    async def hang(alert: Alert) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(parking, "HEARD_WITHIN", 0.02)
    desk: Any = SimpleNamespace(parked={})
    service = Parking(MemoryStore(), desk, "v1", limit=1, alerts=[hang])
    run: Any = SimpleNamespace(job=a_stored_job(task="resize"))
    service.crashed(run, Failure.because(ErrorClass.CRASH, "it killed its child process"))
    async with asyncio.timeout(10):
        await service.look()

    assert list(desk.parked) == ["resize"]
    assert "an alert could not be delivered" in caplog.text
