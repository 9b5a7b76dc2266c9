"""Where there is no `current_job().transaction()`: what is said instead."""

from __future__ import annotations

import pytest

from rota import Retry, current_job
from rota.current import RunningJob
from rota.errors import NotInJob, NotSupported


async def test_a_store_that_is_no_database_says_so(in_memory):
    @in_memory.app.task(retry=Retry.never())
    async def order() -> None:
        current_job().transaction()

    await in_memory.work()
    dead = await in_memory.ended(await order.enqueue())

    assert dead.error_message == str(
        NotSupported(
            "memory",
            "commit your rows together with the end of a job",
            "Keep jobs in the PostgreSQL of your rows, or write a handler that can be repeated.",
        )
    )


def test_outside_a_worker_there_is_none():
    with pytest.raises(NotInJob, match="in a task that a worker runs"):
        RunningJob(None).transaction()
