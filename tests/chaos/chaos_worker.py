"""One worker process: `python -m chaos.chaos_worker`. Everything it needs is in its environment.

CHAOS_RECKLESS=1 takes its self-fencing away: it goes on writing after its
lease, as a worker with a bug would. Then only the fence in the store protects.
CHAOS_CROWD=n runs n workers in this one process. CHAOS_FAIL arms failpoints.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

from chaos.tasks import app
from rota.worker import Worker, run


def make_reckless() -> None:
    from rota.worker.custody import Custody
    from rota.worker.session import Session

    Session.trusted = property(lambda _session: True)  # type: ignore[method-assign,assignment]
    Custody.fenced = lambda *_: None  # type: ignore[method-assign,assignment]
    Custody.heard = lambda *_: None  # type: ignore[method-assign,assignment]


async def crowd(size: int, slots: int) -> int:
    workers = [Worker(app, lanes={"general": slots}) for _ in range(size)]
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: [worker.stop() for worker in workers])
    codes = await asyncio.gather(*(worker.run() for worker in workers))
    await app.close()
    return max(codes)


def main() -> int:
    slots = int(os.environ["CHAOS_SLOTS"])
    if told := os.environ.get("CHAOS_FAIL"):
        from chaos.failpoints import armed

        app._store = armed(app.store, told)
    if "CHAOS_CROWD" in os.environ:
        return asyncio.run(crowd(int(os.environ["CHAOS_CROWD"]), slots))
    return run(app, lanes={"general": slots})


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(name)s %(message)s")
    if os.environ.get("CHAOS_RECKLESS"):
        make_reckless()
    sys.exit(main())
