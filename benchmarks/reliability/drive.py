"""Runs one action of one adapter inside that system's own environment; the last line printed is its answer.

    python drive.py SYSTEM ACTION [N]

setup       its tables                          enqueue   the jobs on standard input
pace        one job of those after another      hammer    the same, repeating each call until it is acknowledged
race        many callers with one key           worker    run jobs with N slots until stopped
rescue      what its documents advise beside a worker
An adapter has: setup, open, enqueue, plain, keyed, unique, close, worker, and JOBS, which lists its jobs.
BENCH_URL, BENCH_PROFILE (and BENCH_DIRECT_URL, where BENCH_URL leads through a pooler) come by environment.
"""

import asyncio
import importlib
import importlib.metadata
import json
import os
import sys
import time

sys.path[:1] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

from reliability.body import note

FACTS = ("NOTES", "JOBS", "BY_ID", "NUMBERS", "INSERTS", "LISTENS", "PENDING")
PATIENCE = 15  # seconds for one call before its caller gives up and repeats it


async def enqueue(mod, url, jobs, n):
    await mod.open(url)
    ids = await mod.enqueue(jobs)
    await mod.close()
    return {"ids": ids}


async def pace(mod, url, jobs, n):
    """One call every n milliseconds; the moment before each call is in the effects file."""
    await mod.open(url)
    begin = time.monotonic()
    for i, job in enumerate(jobs):
        await asyncio.sleep(max(0, begin + i * n / 1000 - time.monotonic()))
        note(job["file"], "call", job["n"])
        await mod.plain(job)
    await mod.close()
    return {}


async def hammer(mod, url, jobs, n):
    """Each job is sent until a call returned; n: with the key that the API offers. Which were acknowledged."""
    acked, errors, calls = [], 0, 0

    async def reopen():
        while True:
            try:
                await asyncio.wait_for(mod.open(url), PATIENCE)
                return
            except Exception:
                await asyncio.sleep(0.2)

    await reopen()
    for job in jobs:
        for _ in range(30):
            calls += 1
            try:
                call = mod.keyed(job, f"key-{job['n']}") if n else mod.plain(job)
                await asyncio.wait_for(call, PATIENCE)
                acked.append(job["n"])
                break
            except Exception as error:
                errors += 1
                if errors <= 5:
                    print(f"# {type(error).__name__}: {error}", file=sys.stderr)
                await asyncio.sleep(0.1)
                if errors % 3 == 0:  # an application would make a new pool at some point too
                    try:
                        await asyncio.wait_for(mod.close(), 2)
                    except Exception:
                        pass
                    await reopen()
    return {"acked": acked, "errors": errors, "calls": calls}


async def race(mod, url, jobs, n):
    """n callers at once for each job, all with the key of that job; rounds begin together in all processes."""
    await mod.open(url)
    first, gap, failed, created = float(os.environ["BENCH_BEGIN"]), float(os.environ["BENCH_GAP"]), 0, 0
    for i, job in enumerate(jobs):
        await asyncio.sleep(max(0, first + i * gap - time.monotonic()))
        calls = [mod.unique(job, f"race-{job['n']}") for _ in range(n)]
        for answer in await asyncio.gather(*calls, return_exceptions=True):
            failed += isinstance(answer, Exception)
            created += answer is True
    await mod.close()
    return {"failed": failed, "created": created}


def main():
    system, action = sys.argv[1], sys.argv[2]
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    url = os.environ["BENCH_URL"]
    mod = importlib.import_module(f"reliability.adapters.r_{system}")
    if action == "facts":
        facts = {k: getattr(mod, k, None) for k in FACTS}
        facts["rescue"] = hasattr(mod, "rescue")
        facts["version"] = importlib.metadata.version(mod.PACKAGE)
        print(json.dumps(facts))
    elif action == "setup":
        asyncio.run(mod.setup(url))
    elif action == "worker":
        mod.worker(url, n)
    elif action == "rescue":
        asyncio.run(mod.rescue(url))
    else:
        print(json.dumps(asyncio.run(globals()[action](mod, url, json.load(sys.stdin), n))))


if __name__ == "__main__":
    main()
