"""How work went, in numbers, as HTTP shows it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from rota._core.numbers import Ending, Summary


class WorkShown(BaseModel):
    """Attempts that ended in the time that was asked for."""

    attempts: int
    completed: int
    failed: int = Field(description="Attempts that failed and are tried again.")
    dead: int
    error_rate: float | None = Field(
        description="The share of attempts that failed; null: none came to a verdict."
    )
    wait_p50: float | None = Field(description="Seconds from being due to being claimed.")
    wait_p95: float | None
    wait_p99: float | None
    run_p50: float | None = Field(description="Seconds from the claim to the end.")
    run_p95: float | None
    run_p99: float | None


def work_shown(summary: Summary) -> WorkShown:
    return WorkShown(
        attempts=summary.attempts,
        completed=summary.done,
        failed=summary.endings.get(Ending.FAILED, 0),
        dead=summary.endings.get(Ending.DEAD, 0),
        error_rate=summary.error_rate,
        wait_p50=summary.wait(0.5),
        wait_p95=summary.wait(0.95),
        wait_p99=summary.wait(0.99),
        run_p50=summary.run(0.5),
        run_p95=summary.run(0.95),
        run_p99=summary.run(0.99),
    )
