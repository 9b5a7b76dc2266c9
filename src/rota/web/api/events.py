"""Events for those who watch: a stream (SSE) that says what changed, never what it is now."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from time import monotonic
from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse

from rota.web.asking import Asked
from rota.web.feed import checked_topics
from rota.web.roles import Role, Routes

routes = Routes("events", "/events")

HEARTBEAT = 15.0
LIFE = 300.0
"""Seconds after which a stream ends; browsers open it again by themselves."""
RESYNC = "event: resync\ndata: {}\n\n"
TRUST = 1.0
"""For so many seconds a reader is believed to be who he was."""


@routes.get(verb="follow", role=Role.VIEWER, response_class=StreamingResponse)
async def follow(
    asked: Asked,
    topics: Annotated[
        str, Query(max_length=2000, description="jobs, queue:NAME, task:NAME, job:ID; by comma.")
    ],
) -> StreamingResponse:
    """Follow what happens to jobs: `jobs-changed` events with a topic and how often which kind of thing happened.

    The first event is `resync`: fetch everything once. It comes again when
    more happened than could be told. Comments keep the connection alive.
    """
    wanted = checked_topics(topics)
    asked.desk.feed.refuse_crowd(asked.key)
    return StreamingResponse(
        _frames(asked, wanted), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


async def _frames(asked: Asked, topics: list[str]) -> AsyncIterator[str]:
    box = asked.desk.feed.open(asked.key, topics, asked.tenant)
    ends, sure = monotonic() + LIFE, monotonic() + TRUST
    number = 0
    try:
        yield f"retry: 2000\n{RESYNC}"
        while (left := ends - monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(HEARTBEAT, left)):
                    await box.filled.wait()
            if monotonic() > sure:
                if not await asked.still_known():
                    return
                sure = monotonic() + TRUST
            missed, news = box.missed, box.take()
            if missed:
                yield RESYNC
            elif not news:
                yield ": still here\n\n"
            for topic, kinds in news.items():
                number += 1
                words = json.dumps({"topic": topic, "kinds": kinds})
                yield f"id: {number}\nevent: jobs-changed\ndata: {words}\n\n"
    finally:
        asked.desk.feed.close(box)
