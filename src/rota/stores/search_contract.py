"""What a store says when it was asked to look for jobs, and there are too many to look at, or too many who ask."""

from __future__ import annotations

from rota.errors import StoreError


class SearchTooWide(StoreError):
    """The jobs were looked at one by one, and it took too long. Nothing was changed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"jobs were looked at for {seconds:g} s, and the answer is not complete. args., error:, category:, "
            "priority: and worker: look at one job after the other; among jobs that have not ended, so does every word "
            "but id:, state:running and created. Narrow it by what has an index among ended jobs (task:, queue:, "
            "tenant:, subject:, tag:, state:dead), or by time (created>1d)."
        )


class SearchesBusy(StoreError):
    """So many others are looking for jobs that this search did not begin."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"other searches were looking through the jobs for {seconds:g} s, and this one has not begun. Ask again "
            "in a moment; searches narrowed by task: and created> end sooner."
        )
