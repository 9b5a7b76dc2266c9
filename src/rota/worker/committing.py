"""Committing: a handler that has a transaction of its own ends together with it."""

from __future__ import annotations

from collections.abc import Callable

from rota._core.outcome import Outcome, Returned, decide
from rota.stores.contract import Answer, Settled
from rota.worker.endings import judged
from rota.worker.execution import Run, Stop


async def commit(run: Run, outcome: Outcome, fenced: Callable[[Settled], None]) -> Outcome:
    """The handler returned: what it wrote and the end of its job are one commit. Answers what is recorded.

    Only a return commits. Whatever else became of the run meanwhile (its time
    was over, its job is somebody else's) undoes what was written.
    """
    assert run.work is not None
    if not isinstance(outcome, Returned) or run.ended or run.stop is Stop.LOST:
        await run.work.undo()
        return outcome
    try:
        settled = await run.work.complete(decide(run.job, outcome, retry=run.retry, now=run.store_time()))
    except BaseException as error:
        return await undo(run, error)
    if settled.answer is Answer.FENCED:
        fenced(settled)
        run.stop = Stop.LOST
    run.written = True
    return outcome


async def undo(run: Run, error: BaseException) -> Outcome:
    """The handler raised, or could not be committed: nothing of it stays."""
    assert run.work is not None
    await run.work.undo()
    return judged(run, error)
