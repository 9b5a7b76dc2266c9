"""Asks everything that people ask, beside a million finished jobs, and prints the milliseconds of each answer.

    python benchmarks/million.py [--postgres /usr/lib/postgresql/15/bin] [--finished 1000000] [--only "jobs list"]

20,000 dead letters, 100,000 waiting jobs, 50,000 audit rows and two weeks of
minutes stand beside them (tests/history.py). A time is that of the whole call
as the command line makes it, the best of five after one to warm up: an answer
that is slow once because its pages are not in memory is a matter of the machine.
Then every page of the dashboard, as a browser asks for it, without the network. Exits with 1 if an answer takes longer
than 100 ms, a page longer than 300, or a search by content (args., error:, priority:, attempt:) longer than a second.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import history
import psycopg
from page_questions import addresses, browser
from questions import VIEWS, questions, some_ids
from servers import Servers

from rota.admin import Admin
from rota.stores.postgres import PostgresStore
from rota.web import recently

LIMIT, PAGE_LIMIT, LOOKING_LIMIT = 100.0, 300.0, 1000.0
"""Milliseconds that an answer may take; a page; and a search by what has no index, which looks at jobs one by one."""
LOOKING = ("args.", "error:", "priority:", "attempt:", "attempt>")
TRIES = 5


async def migrated(url):
    store = PostgresStore(url)
    await store.migrate()
    await store.close()


async def timed(url, only):
    """The milliseconds of each question, by name."""
    store = PostgresStore(url)
    admin = Admin(store, actor="bench")
    took = {}
    asked = {name: ask for name, ask in questions(some_ids(url)).items() if only in name}
    for name, ask in asked.items():
        await ask(admin)
        times = []
        for _ in range(TRIES):
            began = time.perf_counter()
            await ask(admin)
            times.append((time.perf_counter() - began) * 1000)
        took[name] = min(times)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for name, query in VIEWS.items():
            if only not in name:
                continue
            times = []
            for _ in range(1 + TRIES):
                began = time.perf_counter()
                await (await connection.execute(query)).fetchall()
                times.append((time.perf_counter() - began) * 1000)
            took[f"view {name}"] = min(times[1:])
    recently.LASTS = 0.0  # each page is read for itself
    async with browser(store) as client:
        for address in addresses(url, some_ids(url)):
            if only in f"page {address}":
                times = []
                for _ in range(1 + TRIES):
                    began = time.perf_counter()
                    answer = await client.get(address)
                    times.append((time.perf_counter() - began) * 1000)
                    assert answer.status_code in (200, 404), (address, answer.status_code)
                took[f"page {address}"] = min(times[1:])
    await store.close()
    return took


def limit(name):
    if name.startswith("page "):
        return PAGE_LIMIT
    return LOOKING_LIMIT if any(word in name for word in LOOKING) else LIMIT


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--postgres", help="directory of another server's programs")
    parser.add_argument("--finished", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="questions whose name holds this")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args()
    servers = Servers(options.postgres)
    try:
        url = servers.of("postgres").fresh()
        asyncio.run(migrated(url))
        began = time.perf_counter()
        history.fill(url, history.Size(finished=options.finished))
        print(f"filled in {time.perf_counter() - began:.0f} s", flush=True)
        took = asyncio.run(timed(url, options.only))
    finally:
        servers.stop()
    for name, milliseconds in took.items():
        print(f"{milliseconds:8.1f} ms{'  SLOW' if milliseconds > limit(name) else ''}  {name}")
    slow = [name for name, milliseconds in took.items() if milliseconds > limit(name)]
    print(
        f"{len(took)} questions, the slowest {max(took.values()):.0f} ms, {len(slow)} slower than they may be"
    )
    if options.json:
        options.json.write_text(json.dumps(took, indent=1) + "\n")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
