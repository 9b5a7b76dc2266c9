"""One worker process: `python -m chaos.chaos_worker`. Everything it needs is in its environment.

CHAOS_RECKLESS=1 takes its self-fencing away: it goes on writing after its
lease, as a worker with a bug would. Then only the fence in the store protects.
"""

from __future__ import annotations

import logging
import os
import sys

from chaos.tasks import app
from rota.worker import run


def make_reckless() -> None:
    from rota.worker.custody import Custody
    from rota.worker.session import Session

    Session.trusted = property(lambda _session: True)  # type: ignore[method-assign,assignment]
    Custody.fenced = lambda *_: None  # type: ignore[method-assign,assignment]
    Custody.heard = lambda *_: None  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(name)s %(message)s")
    if os.environ.get("CHAOS_RECKLESS"):
        make_reckless()
    sys.exit(run(app, lanes={"general": int(os.environ["CHAOS_SLOTS"])}))
