"""Runs one action of one adapter inside that peer's own virtual environment; the last line printed is its answer.

    python driver.py PEER ACTION [N]

Actions: info, setup, one, concurrent, bulk, pace, mixed, urgent, worker. BENCH_URL and BENCH_HITS come by environment.
"""

import asyncio
import importlib
import importlib.metadata
import inspect
import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "adapters")]

CALLERS = 100
FACTS = ("PENDING", "MARK", "BACKLOG", "CHURN", "SIZES", "SLOTS", "CONFIG")


async def call(f, *args):
    answer = f(*args)
    return await answer if inspect.isawaitable(answer) else answer


async def one(mod, n):
    """Each call awaited before the next."""
    t = time.perf_counter()
    for _ in range(n):
        await call(mod.enqueue, 0.0)
    return time.perf_counter() - t


async def concurrent(mod, n):
    """The same calls, from 100 callers at once: coroutines, or threads where the peer's call blocks."""
    if not inspect.iscoroutinefunction(mod.enqueue):
        with ThreadPoolExecutor(CALLERS) as threads:
            t = time.perf_counter()
            list(threads.map(mod.enqueue, [0.0] * n))
            return time.perf_counter() - t
    left = iter(range(n))

    async def caller():
        for _ in left:
            await mod.enqueue(0.0)

    t = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return time.perf_counter() - t


async def bulk(mod, n):
    t = time.perf_counter()
    await call(mod.enqueue_many, n)
    return time.perf_counter() - t


async def pace(mod, n):
    """About 25 single jobs a second; the gaps vary, so that no peer's polling falls into step with us."""
    gaps = random.Random(1)
    for _ in range(n):
        await asyncio.sleep(gaps.uniform(0.025, 0.055))
        await call(mod.enqueue, time.time())


async def mixed(mod, n):
    await call(mod.mixed, n)


async def urgent(mod, n):
    """One urgent job every 50 ms from the first handler start of a drain of n jobs to its last."""
    sent, hits = 0, os.environ["BENCH_HITS"]
    while not os.path.getsize(hits):
        await asyncio.sleep(0.005)
    while os.path.getsize(hits) < n:
        await call(mod.urgent, time.time())
        sent += 1
        await asyncio.sleep(0.05)
    return sent


async def produce(mod, action, n, url):
    await call(getattr(mod, "open_pool", mod.open) if action == "concurrent" else mod.open, url)
    if action in ("one", "concurrent"):
        await call(mod.enqueue, 0.0)  # the first call pays for the connection
    answer = await globals()[action](mod, n)
    if hasattr(mod, "close"):
        await call(mod.close)
    return {"n": n, "answer": answer}


def main():
    peer, action = sys.argv[1], sys.argv[2]
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    url = os.environ["BENCH_URL"]
    mod = importlib.import_module("p_" + peer)
    if action == "info":
        facts = {k: getattr(mod, k, None) for k in FACTS}
        facts["can"] = [a for a in ("mixed", "urgent") if hasattr(mod, a)]
        facts["versions"] = {d.name: d.version for d in importlib.metadata.distributions()}
        print(json.dumps(facts))
    elif action == "setup":
        if hasattr(mod, "setup"):
            asyncio.run(call(mod.setup, url))
    elif action == "worker":
        mod.worker(url, n)
    else:
        print(json.dumps(asyncio.run(produce(mod, action, n, url))))


if __name__ == "__main__":
    main()
