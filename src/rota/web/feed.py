"""What happens to jobs, for those who watch a page: looked at for all of them together, while somebody watches.

Once a second, and up to four times where the store tells of new work. Events carry names and small numbers, never
payloads: whoever hears one asks again for what he shows. What a slow reader has not fetched is added up in his
mailbox, so that it never grows. When more happened than one look tells, all readers hear that they missed something.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from rota._core.happening import Happening, HappeningFilter, Mark, Memory
from rota.admin import Admin
from rota.errors import RotaError
from rota.web.problems import Problem

if TYPE_CHECKING:
    from rota.app import Rota

log = logging.getLogger("rota.web")

EVERY = 1.0
DEBOUNCE = 0.25
"""Seconds between two looks: without news from the store, and with it."""
RESYNC_EVERY = 5.0
"""Seconds between two times that readers hear that they missed something: then each of them fetches everything."""
STREAMS = 200
STREAMS_EACH = 10
TOPICS = 50
PREFIXES = ("queue:", "task:", "job:")


class Mailbox:
    """What one reader has yet to hear: a count for each of his topics and each kind of happening."""

    def __init__(self, topics: Iterable[str], tenant: str | None) -> None:
        self.topics, self.tenant = frozenset(topics), tenant
        self.filled = asyncio.Event()
        self.missed = False
        """Whether something happened that is told nowhere else, so that everything must be fetched."""
        self._news: dict[str, Counter[str]] = {}

    def put(self, one: Happening) -> None:
        if self.tenant is not None and one.tenant != self.tenant:
            return
        names = {"jobs", f"queue:{one.queue}", f"task:{one.task}", f"job:{one.job_id}"}
        for topic in names & self.topics:
            self._news.setdefault(topic, Counter())[one.kind.value] += 1
            self.filled.set()

    def miss(self) -> None:
        self.missed = True
        self.filled.set()

    def take(self) -> dict[str, Counter[str]]:
        """All of it; then the mailbox is empty."""
        news, self._news, self.missed = self._news, {}, False
        self.filled.clear()
        return news


class Feed:
    """Looks at the store while somebody reads, and fills the mailboxes."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._boxes: dict[Mailbox, str] = {}
        self._looking: asyncio.Task[None] | None = None
        self._stirred = asyncio.Event()

    def __len__(self) -> int:
        return len(self._boxes)

    def refuse_crowd(self, caller: str) -> None:
        """So many streams are open for all, and for each caller."""
        if len(self._boxes) >= STREAMS or list(self._boxes.values()).count(caller) >= STREAMS_EACH:
            raise Problem(
                429,
                "too-many-streams",
                f"Too many streams are open; you may have {STREAMS_EACH}. Close one, or poll.",
                headers={"Retry-After": "5"},
            )

    def open(self, caller: str, topics: Iterable[str], tenant: str | None) -> Mailbox:
        """A mailbox for these topics, until it is closed."""
        box = Mailbox(topics, tenant)
        self._boxes[box] = caller
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on(), name="rota events")
        return box

    def close(self, box: Mailbox) -> None:
        self._boxes.pop(box, None)
        if not self._boxes and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look_on(self) -> None:
        self._stirred = asyncio.Event()  # of the loop that looks
        listening = asyncio.create_task(self._listen(), name="rota events: hints")
        try:
            await self._follow()
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening

    async def _follow(self) -> None:
        admin = Admin(self._rota.store, actor="events")
        mark: Mark | None = None
        began, memory = None, Memory()
        missed, told = False, -RESYNC_EVERY
        while True:
            try:
                began = began or await admin.store.now()
                look = await admin.happened(mark or Mark(began), HappeningFilter())
                mark = look.mark
                for one in memory.new(look):
                    for box in (
                        list(self._boxes) if one.at >= began else ()
                    ):  # the first look reaches back a little
                        box.put(one)
                missed = missed or look.more  # whose it was is not known: it may be anybody's
                if missed and monotonic() - told >= RESYNC_EVERY:
                    missed, told = False, monotonic()
                    for box in self._boxes:
                        box.miss()
            except RotaError as error:  # the store may be away; readers keep their streams
                log.debug("events: %s", error)
            await asyncio.sleep(DEBOUNCE)
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY - DEBOUNCE):
                    await self._stirred.wait()
            self._stirred.clear()

    async def _listen(self) -> None:
        """Hear of new work at once where the store can tell; what it does not tell, the next look finds."""
        listen = getattr(self._rota.store, "listen", None)
        while listen is not None:
            with suppress(RotaError):
                await listen(lambda _hint: self._stirred.set())
            await asyncio.sleep(5.0)


def checked_topics(text: str) -> list[str]:
    """The topics of `jobs,queue:mail,job:ID`."""
    from rota._core.ids import parse_id

    topics = []
    for topic in filter(None, (part.strip() for part in text.split(","))):
        if topic.startswith("job:"):
            try:
                topics.append(f"job:{parse_id(topic.removeprefix('job:'))}")
            except ValueError as error:
                raise Problem(422, "bad-topic", str(error)) from error
        elif topic == "jobs" or (topic.startswith(PREFIXES) and not topic.endswith(":")):
            topics.append(topic)
        else:
            raise Problem(
                422, "bad-topic", f"There is no topic {topic!r}. Write jobs, queue:NAME, task:NAME or job:ID."
            )
    if not 0 < len(topics) <= TOPICS:
        raise Problem(422, "bad-topic", f"Name 1 to {TOPICS} topics, not {len(topics)}.")
    return topics
