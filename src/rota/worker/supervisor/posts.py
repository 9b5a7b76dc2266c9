"""Posts: each is a place that one child fills. A child is replaced only once its heir works."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import monotonic

from rota.worker.supervisor.child import Child
from rota.worker.supervisor.judging import STEADY, pause_before_restart

log = logging.getLogger("rota.supervisor")


class Post:
    """One place: who works there, who comes, who goes, and when to try again."""

    def __init__(
        self,
        number: int,
        command: Sequence[str],
        stirred: Callable[[], None],
        on_end: Callable[[Post, Child, int], None],
    ) -> None:
        self.number = number
        self.child: Child | None = None
        self.heir: Child | None = None
        """Its replacement, which has not begun to work."""
        self.leaving: set[Child] = set()
        self.deaths = 0
        """Early deaths in a row."""
        self.start_at = 0.0
        self.renew_at = 0.0
        self.renewal: str | None = None
        """Why the child is to be replaced, if it is."""
        self.closed = False
        """Its child was asked from afar to go: nobody follows it."""
        self._asked_at = 0.0
        self._command, self._stirred, self._on_end = command, stirred, on_end
        self._tasks: set[asyncio.Task[None]] = set()

    def everyone(self) -> list[Child]:
        return [child for child in (self.child, self.heir, *self.leaving) if child is not None]

    def fill(self, now: float) -> None:
        """See that somebody works here."""
        if self.child is None and self.heir is not None:
            self.child, self.heir = self.heir, None
        if self.child is None and not self.closed and now >= self.start_at:
            self.child = self._employ()

    def renew(self, why: str) -> None:
        """Have the child replaced by one that starts from now on."""
        self.renewal, self._asked_at = why, monotonic()

    def renewed(self, child: Child) -> bool:
        """A child works; whether a renewal that was asked for is done with it."""
        if self.renewal is None or child is not self.child or child.started < self._asked_at:
            return False
        self.renewal = None
        return True

    def close(self) -> None:
        """Let nobody follow the child."""
        self.closed, self.renewal = True, None

    def unwanted(self, child: Child) -> bool:
        """Whether this one came to follow a child that was asked to go."""
        return self.closed and child.ordered is None and child not in self.leaving

    def call_heir(self) -> None:
        """Start the replacement; the old child goes on until it works."""
        self.heir = self._employ()

    def hand_over(self) -> None:
        """The heir works: let the old child finish what it runs, and go."""
        assert self.heir is not None
        if self.child is not None:
            self.child.retire()
            self.leaving.add(self.child)
        self.child, self.heir = self.heir, None

    def left(self, child: Child, *, blameless: bool) -> float:
        """A child has ended; the seconds until another starts. `blameless`: nothing is wrong with how it starts."""
        self.leaving.discard(child)
        now = monotonic()
        able = child.ready_at is not None
        if able and now - (child.ready_at or now) > STEADY:
            self.deaths = 0
        pause = 0.0
        if not blameless:
            self.deaths += 1
            pause = pause_before_restart(self.deaths, able=able)
        if child is self.child:
            self.child, self.start_at = None, now + pause
        elif child is self.heir:
            self.heir, self.renew_at = None, now + pause
        return pause

    async def settled(self) -> None:
        """Wait until every child's end has been dealt with."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _employ(self) -> Child:
        child = Child(self.number)
        task = asyncio.create_task(self._life(child), name=f"rota-child-{self.number}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return child

    async def _life(self, child: Child) -> None:
        try:
            await child.start(self._command, self._stirred)
        except OSError as error:  # no process, no memory, no descriptors: all may come back
            log.error("child %d could not be started (%s). Trying again soon.", self.number, error)  # noqa: TRY400 - said in full
            self.left(child, blameless=False)
            self._stirred()
            return
        code = await child.live()
        try:
            self._on_end(self, child, code)
        except Exception:  # an error of ours must not leave the post without a child for ever
            log.exception("the end of child %d (pid %d) could not be dealt with.", self.number, child.pid)
            self.left(child, blameless=False)
        finally:
            child.close()
        self._stirred()
