"""PostgreSQL and the memory store do the same, whatever is asked of them in whatever order.

ROTA_STATEFUL_EXAMPLES and ROTA_STATEFUL_STEPS make longer runs, with new choices each time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from twins import Twins

from build import Clock
from rota.stores.contract import Store
from rota.stores.memory import MemoryStore
from rota.stores.postgres import PostgresStore
from rota.stores.postgres.sqlfiles import statement

pytestmark = pytest.mark.slow  # thousands of steps on both stores

EXAMPLES = int(os.environ.get("ROTA_STATEFUL_EXAMPLES", "50"))
STEPS = int(os.environ.get("ROTA_STATEFUL_STEPS", "50"))
LONGER = "ROTA_STATEFUL_EXAMPLES" in os.environ or "ROTA_STATEFUL_STEPS" in os.environ

BOUNDED = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    derandomize=not LONGER,
    deadline=None,
    database=None,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@contextmanager
def a_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """One event loop for all steps of all examples."""
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@pytest.mark.scenario(4)
@pytest.mark.timeout(0 if LONGER else 600)  # a failure is made small first, which takes its time
def test_postgres_does_what_the_memory_store_does(fresh_database: str) -> None:
    async def empty_store(clock: Clock) -> Store:
        async with await psycopg.AsyncConnection.connect(fresh_database, autocommit=True) as connection:
            await connection.execute(statement("empty"))
        return PostgresStore(fresh_database, clock=clock)

    with a_loop() as loop:
        run_state_machine_as_test(lambda: Twins(loop, empty_store), settings=BOUNDED)


def test_the_machine_would_notice_a_store_that_forgets_the_fence() -> None:
    class Forgetful(MemoryStore):
        """Settles whatever version it is given."""

        async def settle(self, transitions):
            now = {job.id: job.version for job in await self.get([each.job.id for each in transitions])}
            fresh = [
                each._replace(job=each.job._replace(version=now.get(each.job.id, 0))) for each in transitions
            ]
            return await super().settle(fresh)

    async def forgetful_store(clock: Clock) -> Store:
        return Forgetful(clock=clock)

    with a_loop() as loop, pytest.raises(AssertionError):
        run_state_machine_as_test(
            lambda: Twins(loop, forgetful_store), settings=settings(BOUNDED, phases=[Phase.generate])
        )
