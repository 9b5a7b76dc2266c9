"""What is dear to read is read once for all who look, and never for one tenant from another's answer."""

from __future__ import annotations

from collections import Counter

import pytest

from build import a_job
from page_kit import paged
from rota._core.schedule import ScheduleSpec
from rota._core.task_spec import TaskSpec
from rota.stores.memory import MemoryStore


class Counting(MemoryStore):
    """A store that counts its dear reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: Counter[str] = Counter()

    async def series(self, *args, **options):
        self.reads["series"] += 1
        return await super().series(*args, **options)

    async def depths(self, *args, **options):
        self.reads["depths"] += 1
        return await super().depths(*args, **options)

    async def figures(self, *args, **options):
        self.reads["figures"] += 1
        return await super().figures(*args, **options)

    async def ticks(self, *args, **options):
        self.reads["ticks"] += 1
        return await super().ticks(*args, **options)

    async def running(self, *args, **options):
        self.reads["running"] += 1
        return await super().running(*args, **options)

    async def room(self):
        self.reads["room"] += 1
        return await super().room()


@pytest.mark.parametrize(
    ("path", "dear"),
    [
        ("/queues", ("depths", "figures")),
        ("/queues/default", ("depths", "series", "figures")),
        ("/tasks", ("figures", "series")),
        ("/tasks/email", ("figures", "series")),
        ("/failures", ("figures",)),
        ("/schedules", ("ticks",)),
        ("/system", ("room",)),
        ("/workers", ("running", "figures")),
    ],
)
async def test_two_who_look_at_once_cost_the_store_one_dear_read(path, dear):
    store = Counting()
    await store.publish([TaskSpec("email")])
    await store.publish_schedules([ScheduleSpec("nightly", "email", "{}", "30 2 * * *")])
    await store.enqueue([a_job("email", queue="default")])
    async with paged(store) as site:
        ann, ben = await site.visitor("viewer"), await site.visitor("manager")
        assert [(await who.get(path)).status_code for who in (ann, ben)] == [200, 200]

    assert {verb: store.reads[verb] for verb in dear} == dict.fromkeys(dear, 1)


async def test_what_one_tenant_was_told_is_not_told_to_another():
    store = Counting()
    await store.publish([TaskSpec("email")])
    async with paged(store) as site:
        everybody = await (await site.visitor("viewer")).get("/tasks/email")
        red = await (await site.visitor("viewer", "red")).get("/tasks/email")

    assert "Throughput" in everybody.text
    assert "Throughput" not in red.text
