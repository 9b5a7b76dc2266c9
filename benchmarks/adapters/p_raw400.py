"""The same prototype as the house first measured it: 200 jobs a connection whatever the slots, so 400 in flight."""

import asyncio
from p_raw import *  # noqa: F403
from p_raw import Worker

CONFIG = "raw with 200 jobs a connection, 400 in flight (not the same slots as the others)"


def worker(url, slots):
    asyncio.run(Worker(url, 2, 200).run())
