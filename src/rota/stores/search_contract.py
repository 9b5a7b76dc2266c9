"""What a store says when it was asked to look for jobs, and there are too many to look at."""

from __future__ import annotations

from rota.errors import StoreError


class SearchTooWide(StoreError):
    """The jobs were looked at one by one, and it took too long. Nothing was changed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"this filter has looked at jobs for {seconds:g} s and its page is not full: args., error:, category:, "
            "priority: and worker: look at one job after the other, newest first. Narrow it by what has an index "
            "(task:, queue:, tenant:, subject:, tag:, state:dead, state:running), or by time (created>1d)."
        )
