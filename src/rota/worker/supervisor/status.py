"""The status: how the children are, for probes, for systemd and for the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from rota.worker.supervisor.block import Phase
from rota.worker.supervisor.child import Child
from rota.worker.supervisor.health import Answer
from rota.worker.supervisor.judging import stuck
from rota.worker.supervisor.posts import Post

SILENT = 10.0
"""Seconds without a look before the supervisor itself counts as stuck."""
MISSED = 2.5
"""Beats without an answer before the store counts as away."""


class Status:
    """Everything here is read from memory: a probe costs no query."""

    def __init__(
        self, posts: Sequence[Post], started: Callable[[], bool], stopping: Callable[[], bool]
    ) -> None:
        self._posts, self._started, self._stopping = posts, started, stopping
        self.looked = monotonic()
        """When the supervisor last looked at its children."""

    def questions(self) -> Mapping[str, Callable[[], Answer]]:
        return {"/livez": self.live, "/readyz": self.ready, "/startupz": self.startup}

    def live(self) -> Answer:
        """Whether the supervisor itself goes on. What is wrong with a child is the supervisor's business."""
        silent = monotonic() - self.looked
        return Answer(
            silent < SILENT, "ok" if silent < SILENT else f"no look at the children for {silent:.0f} s"
        )

    def ready(self) -> Answer:
        """Whether at least one child takes jobs and the store answers it."""
        if self._stopping():
            return Answer(False, "stopping")
        words = [self._words(post) for post in self._posts]
        well = any(not trouble for _, trouble in words)
        return Answer(well, "; ".join(text for text, _ in words))

    def startup(self) -> Answer:
        """Whether a child has ever begun to work."""
        if self._started():
            return Answer(True, "ok")
        return Answer(False, "; ".join(self._words(post)[0] for post in self._posts))

    def line(self) -> str:
        """All of it in one line."""
        return "stopping" if self._stopping() else self.ready().words

    def lines(self, *, jobs: bool) -> list[str]:
        """A line for each child, and for each job that it runs."""
        now, found = monotonic(), []
        for post in self._posts:
            found.append(self._words(post)[0])
            for child in post.everyone() if jobs else ():
                if child.facts is None:
                    continue
                found += [
                    f"child {child.number} (pid {child.pid}) runs {child.task_of(entry)!r} (job {entry.job_id}) "
                    f"for {now - entry.began:.1f} s"
                    for entry in child.entries()
                ]
        return found

    def _words(self, post: Post) -> tuple[str, bool]:
        """How a post is, and whether something is wrong there."""
        child, name = post.child, f"child {post.number}"
        if child is None:
            if post.closed:
                return f"{name} was asked from afar to go, and has gone", True
            if not post.deaths:
                return f"{name} is starting", True
            wait = max(0.0, post.start_at - monotonic())
            return f"{name} died {post.deaths} times in a row, the next starts in {wait:.0f} s", True
        trouble = self._trouble(child)
        if trouble is not None:
            again = f" (died {post.deaths} times before)" if post.deaths and child.facts is None else ""
            return f"{name} {trouble}{again}", True
        return f"{name} is ready", False

    def _trouble(self, child: Child) -> str | None:
        now = monotonic()
        if child.pid == 0:
            return "is starting"
        sight = child.look()
        if child.facts is None:
            what = "reaches for the store" if sight.phase is Phase.OPENING else "is starting"
            return f"{what} since {now - child.started:.0f} s"
        if child.ordered is not None:
            return f"is {child.ordered.doing}, asked from afar"
        if child.told_to_stop is not None:
            return "is stopping"
        if stuck(sight, now, child.facts.stall):
            return f"has stood still for {now - sight.ticked:.0f} s"
        answered = max(sight.beaten, sight.kept if sight.kept_for == sight.session else 0.0)
        if now - answered > MISSED * child.facts.beat:
            since = f" for {now - answered:.0f} s" if answered else ""
            return f"works, but the store has not answered{since}"
        return None
