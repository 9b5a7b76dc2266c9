"""What a handler logs in a child process is its job's log as well."""

from __future__ import annotations

import process_tasks
import pytest
from worker_stage import until


@pytest.mark.req("D23")
async def test_lines_of_a_child_process_are_kept_for_their_job(children):
    await children.work()
    handles = [await process_tasks.talk.enqueue(word) for word in ("one", "two")]

    for handle, word in zip(handles, ("one", "two"), strict=True):
        await children.ended(handle, within=20)
        await until(lambda handle=handle: children.store.logs(handle.id))
        [tail] = await children.store.logs(handle.id)
        assert sorted((line.level, line.message) for line in tail.lines) == [
            ("INFO", f"said {word}"),
            ("WARNING", f"process_tasks: logged {word}"),
        ]
