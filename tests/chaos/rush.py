"""A rush: many threads of one process enqueue the same key at the same moment. `python -m chaos.rush '{…}'`.

Prints one line for each call: the round, the job's id, and whether this call made it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from chaos.journal import Journal
from chaos.tasks import app, work
from rota import Unique

Answer = tuple[int, str, bool]


def terms(how: str, round_: int) -> dict[str, Any]:
    """What makes two jobs the same."""
    if how == "key":
        return {"key": f"round-{round_}"}
    return {"unique": Unique("the one", until=how)}


def call(how: str, name: str, round_: int, journal: Journal) -> Answer:
    # With an idempotency key the arguments must be the same; unique jobs tell by theirs who made them.
    key = f"round-{round_}" if how == "key" else name
    handle = work.using(**terms(how, round_)).enqueue_sync(key, 2)
    if handle.created:
        journal.intend([key])
        journal.ack({key: str(handle.id)})
    return round_, str(handle.id), handle.created


def rush(name: str, how: str, threads: int, rounds: int, begin: float, apart: float) -> list[Answer]:
    """Every round begins at the same wall time in every thread of every process."""
    journal = Journal(Path(os.environ["CHAOS_JOURNAL"]))
    answers: list[Answer] = []
    failures: list[Exception] = []

    def caller(number: int) -> None:
        try:
            for round_ in range(rounds):
                time.sleep(max(0.0, begin + round_ * apart - time.time()))
                answers.append(call(how, f"{name}-{number}-{round_}", round_, journal))
        except Exception as error:
            failures.append(error)

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(threads)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    journal.close()
    if failures:
        raise ExceptionGroup("calls that failed", failures)
    return answers


if __name__ == "__main__":
    app.open_sync()
    for answer in rush(**json.loads(sys.argv[1])):
        print(json.dumps(answer))
    app.close_sync()
