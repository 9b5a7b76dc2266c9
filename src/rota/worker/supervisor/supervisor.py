"""The supervisor: keeps its posts filled, watches over who works there, and ends when everybody has gone home."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from rota.errors import RotaError, StoreError, StoreUnavailable
from rota.stores.contract import Store
from rota.worker.ending import end_all
from rota.worker.supervisor.block import Phase
from rota.worker.supervisor.child import Child
from rota.worker.supervisor.farewell import say_farewell
from rota.worker.supervisor.health import Address, HealthPort, Page
from rota.worker.supervisor.judging import SLACK, stuck
from rota.worker.supervisor.notify import Notifier
from rota.worker.supervisor.posts import Post
from rota.worker.supervisor.report import CrashReport, Ending
from rota.worker.supervisor.status import Status
from rota.worker.supervisor.watch import Watch
from rota.worker.supervisor.wire import Facts, Failed
from rota.worker.worker import FLUSH, GRACEFUL, INTERRUPTED, LAST_CALL

log = logging.getLogger("rota.supervisor")

LOOK = 0.25
"""Seconds between two looks at the children."""
EXTRA = 5.0
"""Seconds beyond its own times that a child has to end."""
ZOMBIES = 8
"""Threads that would not end before a child is replaced because of them."""
LEAVING = 2
"""Old children that may still finish their jobs when another is replaced for its age or its memory."""
LEASE = 15.0
METRICS_WITHIN = 4.0
"""Seconds that the store has to answer whoever asks for metrics."""


class Plan(NamedTuple):
    """What a supervisor was told to keep running."""

    command: tuple[str, ...]
    """The command line of a child; what binds it to us is added to it."""
    processes: int = 1
    max_jobs: int | None = None
    max_rss: int | None = None
    health: Address | None = None
    metrics_token: str | None = None


class StartFailed(RotaError):
    """The very first child could not start, and said why."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.code, self.shown = failed.code, failed.shown


class Supervisor:
    """Runs `plan.processes` children until it is told to stop. Runs no code of the user's."""

    def __init__(
        self,
        plan: Plan,
        open_store: Callable[[str], Store],
        *,
        when_ready: Callable[[Supervisor], Coroutine[Any, Any, None]] | None = None,
        metrics: Callable[[Store], Awaitable[Page]] | None = None,
    ) -> None:
        self.plan, self._open_store, self._when_ready = plan, open_store, when_ready
        self._metrics = metrics
        self.facts: Facts | None = None
        """What the first child that worked said of the app."""
        self.watch = Watch()
        self.stops = 0
        """How often it was told to stop: gracefully, at once, by force."""
        self.reports: list[CrashReport] = []
        """Of the latest deaths, the last one last."""
        self._stirred = asyncio.Event()
        self.posts = [
            Post(number + 1, plan.command, self._stirred.set, self._ended) for number in range(plan.processes)
        ]
        self.status = Status(self.posts, lambda: self.facts is not None, lambda: self.finishing)
        self._notifier = Notifier()
        self._failed: Failed | None = None
        self._interrupted = False
        self._beside: set[asyncio.Task[None]] = set()

    @property
    def finishing(self) -> bool:
        """Whether it ends when its children have: it was told to stop, or each of them was asked to go."""
        return self.stops > 0 or all(post.closed for post in self.posts)

    async def run(self) -> int:
        """Until every child has gone for good. 0: every job that was begun has ended; 1: some were handed back."""
        health = self._health()
        if health is not None:
            await health.open()
            log.info("health is told at http://%s/readyz.", health.address)
        try:
            while not (self.finishing and not any(post.everyone() for post in self.posts)):
                self._round(monotonic())
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK):
                        await self._stirred.wait()
                self._stirred.clear()
        finally:
            await self._leave(health)
        if self._failed is not None:
            raise StartFailed(self._failed)
        return INTERRUPTED if self._interrupted else GRACEFUL

    def _health(self) -> HealthPort | None:
        if self.plan.health is None:
            return None
        pages = {} if self._metrics is None else {"/metrics": self._tell_metrics}
        return HealthPort(self.plan.health, self.status.questions(), pages, self.plan.metrics_token)

    async def _tell_metrics(self) -> Page:
        """What is known of the work, read from the store for whoever asks."""
        if self.watch.store is None or self._metrics is None:
            raise StoreUnavailable("no child has reached the store yet, so nothing is known of the work.")
        async with asyncio.timeout(METRICS_WITHIN):
            return await self._metrics(self.watch.store)

    def stop(self) -> None:
        """Stop: gracefully; the second time at once; the third time by force."""
        self.stops += 1
        if self.stops == 1:
            self._notifier.stopping()
            if self._failed is None:
                log.info("stopping: children take no more jobs and finish those that run.")
        for post in self.posts:
            for child in post.everyone():
                if self.stops > 2:
                    child.kill(Ending.STOP)
                elif child.pid:
                    child.stop(now=self.stops > 1)
        self._stirred.set()

    def renew(self) -> None:
        """Replace every child by a new one, which imports the app anew; one after another. Who was asked to go goes."""
        if self.finishing:
            return
        log.info("every child is replaced, one after another.")
        self._notifier.reloading()
        for post in self.posts:
            if not post.closed:
                post.renew("it was asked for")
        self._stirred.set()

    def tell(self) -> None:
        """Say in the log what everybody is doing."""
        for line in self.status.lines(jobs=True):
            log.info("%s", line)

    # One round

    def _round(self, now: float) -> None:
        self.status.looked = now
        self.watch.wake(now)
        for post in self.posts:
            if not self.stops:
                post.fill(now)
            for child in post.everyone():
                if child.facts is not None:
                    self._welcome(post, child, child.facts)
                self._heed_order(post, child)
                if child.pid and (self.stops or post.unwanted(child)):
                    child.stop(now=self.stops > 1)  # also one that came since the signal
                self.watch.look(child)
                self._insist(child, now)
        if not self.stops:
            self._replace_one(now)
        self._notifier.status(self.status.line())
        self._notifier.alive()

    def _welcome(self, post: Post, child: Child, facts: Facts) -> None:
        """A child has begun to work."""
        if post.heir is child:
            post.hand_over()
        if post.renewed(child) and not any(other.renewal for other in self.posts):
            self._notifier.ready()  # ends a reload
        if self.facts is None:
            self._learn(facts)

    def _learn(self, facts: Facts) -> None:
        """The first child that works says what the app is like."""
        self.facts = facts
        if facts.url is None:
            log.warning(
                "the store of this app (%s) lives inside its process, so the supervisor can neither beat for it nor "
                "take back its jobs.", facts.store,
            )  # fmt: skip
        else:
            self.watch.store = self._open_store(facts.url)
            self._do_beside(self._warm_up(self.watch.store))
        self._notifier.ready()
        if self._when_ready is not None:
            self._do_beside(self._when_ready(self))

    def _heed_order(self, post: Post, child: Child) -> None:
        """If somebody asked from afar that this child goes, nobody follows it."""
        if child.ordered is None or child is not post.child or post.closed:
            return
        reloading = post.renewal is not None
        post.close()
        log.info("child %d was asked from afar to %s; nobody takes its place.", post.number, child.ordered)
        if self.finishing and not self.stops:
            log.info("every child was asked to go: this worker ends when they have.")
            self._notifier.stopping()
        elif reloading and not any(other.renewal for other in self.posts):
            self._notifier.ready()

    def _insist(self, child: Child, now: float) -> None:
        """End a child that does not end by itself when it should."""
        if child.pid == 0 or child.ended_for is not None:
            return
        sight = child.look()
        if child.told_to_stop is None:
            if sight.phase is Phase.ENDING:
                child.told_to_stop = now  # somebody else told it
            return
        patience = EXTRA
        if child.facts is not None:
            grace = 0.0 if child.told_now else child.facts.grace
            quick = stuck(sight, now, child.facts.stall)  # then it has nothing to write, and cannot
            patience = grace + LAST_CALL + (SLACK if quick else FLUSH + EXTRA)
        if now - child.told_to_stop > patience:
            log.error("ending child %d (pid %d): it did not stop in time.", child.number, child.pid)
            child.kill(Ending.STOP)

    # Replacing children that still work

    def _replace_one(self, now: float) -> None:
        """Begin one replacement at a time, so that there is never a moment with everybody new."""
        if any(post.heir is not None for post in self.posts):
            return
        for post in self.posts:
            child = post.child
            if child is None or not child.working or now < post.renew_at:
                continue
            crowded = len(post.leaving) >= LEAVING  # jobs without an end would let the old ones pile up
            why = post.renewal or (None if crowded else self._worn_out(child))
            if why is not None:
                log.info(
                    "child %d (pid %d) is replaced: %s. Its replacement starts now.",
                    post.number,
                    child.pid,
                    why,
                )
                post.call_heir()
                return

    def _worn_out(self, child: Child) -> str | None:
        sight, most, largest = child.look(), self.plan.max_jobs, self.plan.max_rss
        if most is not None and sight.begun >= most:
            return f"it has begun {sight.begun} jobs (--max-jobs {most})"
        if largest is not None and child.rss is not None and child.rss > largest:
            if sight.begun == 0:
                self.plan = self.plan._replace(max_rss=None)
                log.error(
                    "a child needs %d MB before its first job, more than --max-rss allows (%d MB): no child is "
                    "replaced for its memory any more. Give it more.", child.rss >> 20, largest >> 20,
                )  # fmt: skip
                return None
            return f"it uses {child.rss >> 20} MB (--max-rss {largest >> 20} MB)"
        if sight.zombies >= ZOMBIES:
            return f"{sight.zombies} threads that were told to stop still run"
        return None

    # Ends

    def _ended(self, post: Post, child: Child, code: int) -> None:
        """A child is gone. Heard at once, whatever the reason."""
        child.kill_group()  # what its jobs have started and left behind
        self._heed_order(post, child)  # its last words
        if self.facts is None and child.facts is not None:
            self._learn(child.facts)  # it died as soon as it worked
        sight = child.look()
        clean = child.bye is not None or (child.told_to_stop is not None and sight.session is None)
        if child.bye:
            self._interrupted = True
        if child.failed is not None:
            self._could_not_start(post, child, child.failed)
        elif not clean:
            self._died(post, child, child.report(code))
        else:
            post.left(child, blameless=post.closed or child.told_to_stop is not None or sight.begun > 0)

    def _could_not_start(self, post: Post, child: Child, failed: Failed) -> None:
        if self.facts is None and not self.stops:
            self._failed = failed
            self.stop()
        heir = child is post.heir
        pause = post.left(child, blameless=False)
        if self.facts is None:
            return
        if heir and post.renewal is not None:
            for other in self.posts:
                other.renewal = None
            self._notifier.ready()
            log.error(
                "the new child %d could not start (%s). The old ones go on. Correct that, and ask again.",
                child.number, failed.message,
            )  # fmt: skip
        else:
            log.error(
                "child %d could not start (%s). Trying again in %.1f s.", child.number, failed.message, pause
            )

    def _died(self, post: Post, child: Child, report: CrashReport) -> None:
        if self.stops or post.closed:
            self._interrupted = self._interrupted or bool(report.running)
        missed = child is post.child and not self.stops and not post.closed
        pause = post.left(child, blameless=report.ended_for is not None)
        self.reports = [*self.reports[-9:], report]
        jobs = ", ".join(
            f"{run.task!r} (job {run.job_id}, {run.seconds:.1f} s)" for run in report.running[:10]
        )
        log.error(
            "child %d (pid %d) %s%s. It was running: %s.%s",
            report.number, report.pid, report.how,
            "" if report.rss is None else f" with {report.rss >> 20} MB",
            jobs or "nothing", f" Another starts {f'in {pause:.1f} s' if pause else 'now'}." if missed else "",
        )  # fmt: skip
        if report.stack:
            log.error("the last stacks of child %d:\n%s", report.number, report.stack)
        if report.session is not None and self.watch.store is not None:
            lease = LEASE if child.facts is None else child.facts.lease
            self._do_beside(say_farewell(self.watch.store, report, within=2 * lease))

    async def _leave(self, health: HealthPort | None) -> None:
        """Nobody is left behind: no process, no session, no connection."""
        self.stops = self.stops or 1
        while anybody := [child for post in self.posts for child in post.everyone()]:
            for child in anybody:  # only after an error of our own
                child.kill(Ending.STOP)
            await asyncio.sleep(0.05)
        for post in self.posts:
            await post.settled()
        if self._beside:
            await asyncio.wait(self._beside, timeout=FLUSH)
        await end_all(list(self._beside))
        if self.watch.store is not None:
            with suppress(StoreError):
                await self.watch.store.close()
        if health is not None:
            await health.close()

    def _do_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside_done)

    def _beside_done(self, task: asyncio.Task[None]) -> None:
        self._beside.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the supervisor ran into an error and goes on: %r", error, exc_info=error)

    async def _warm_up(self, store: Store) -> None:
        """Have a connection before it is needed: when the server is full there is none to be had."""
        with suppress(StoreError):
            await store.now()
