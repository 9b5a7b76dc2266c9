"""A red night to practise on: a shop in which seven things go wrong at once, on a real PostgreSQL.

    python examples/night.py            makes the mess in .rota/ here, and stays until Ctrl-C
    rota top                            in a second terminal: what is wrong, and what to do?

Nothing needs to be installed besides Rota, and nothing outside this directory is touched. What is wrong:

1. the payment provider is away: every `charge` fails            back with: touch payments-are-up
2. one feed is broken for good: a poison payload                 `parse_feed`
3. reports are slow, and their queue is behind its target        `build_report`
4. a library crashes its process: the task gets parked           `render_pdf`
5. jobs wait for a task that yesterday's deploy took away        `old_import`
6. huge payloads fill the store                                  `export_rows`
7. one tenant floods the mail of all others                      `send_mail`, tenant acme

docs/operations.md walks through it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

from rota import Queue, Retry, Rota

app = Rota(
    queues=[Queue("mail", target="5s"), Queue("reports", target="5s"), Queue("payments", target="1m")],
    code_version="night-1",
)


@app.task(queue="payments", retry=Retry(attempts=2, base=0.5))
async def charge(order: int, cents: int) -> str:
    await asyncio.sleep(0.05)
    if not Path("payments-are-up").exists():
        raise ConnectionError(f"payments.example:443 refused the connection (order {order})")
    return f"order {order}: {cents} cents"


@app.task(queue="feeds", retry=Retry(attempts=2, base=0.5))
def parse_feed(url: str) -> int:
    if "broken" in url:
        raise ValueError("not well-formed: line 1, column 7")
    return len(url)


@app.task(queue="reports")
async def build_report(month: int) -> None:
    await asyncio.sleep(4.0)


@app.task(queue="documents", executor="process", retry=Retry(attempts=3, base=0.5))
def render_pdf(document: int) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


@app.task(queue="exports")
def export_rows(rows: list[str]) -> int:
    return len(rows)


@app.task(queue="mail")
async def send_mail(to: str) -> None:
    await asyncio.sleep(0.25)


async def seed() -> None:
    """Store the work of the evening. The worker does the rest."""
    await app.migrate()
    yesterday = Rota()

    @yesterday.task(queue="feeds")
    def old_import(number: int) -> None:
        """The code that could run this was deployed away."""

    await charge.enqueue_many([(number, number * 100) for number in range(1, 41)])
    await parse_feed.enqueue_many([(f"https://feeds.example/{number}.xml",) for number in range(20)])
    await parse_feed.enqueue("https://feeds.example/broken.xml")
    await build_report.enqueue_many([(month,) for month in range(1, 61)])
    await render_pdf.enqueue_many([(number,) for number in range(6)])
    await old_import.enqueue_many([(number,) for number in range(12)])
    warnings.simplefilter("ignore")  # Rota warns of payloads as large as these, and rightly
    for number in range(25):
        rows = [f"row {number}-{row}: {hash((number, row)):x}" for row in range(6000)]
        await export_rows.using(delay="1h").enqueue(rows)
    await send_mail.using(tenant="acme").enqueue_many([(f"{number}@acme.example",) for number in range(4000)])
    for tenant in ("birch", "cedar", "dune"):
        await send_mail.using(tenant=tenant).enqueue_many([(f"{number}@example",) for number in range(10)])


WORKER = ("--lane", "general=10:mail,payments,feeds", "--lane", "documents=2", "--lane", "reports=1")


async def red() -> bool:
    """Whether everything that should go wrong has gone wrong."""
    from rota.admin import Admin

    picture = await Admin(app.store, actor="night").picture()
    about = {alert.about for alert in picture.alerts if alert.bad}
    dead = {group.task for group in picture.groups or ()}
    return {"task:charge", "task:render_pdf", "queue:reports", "queue:mail"} <= about and {
        "charge",
        "parse_feed",
    } <= dead


async def turn_red(worker: subprocess.Popen[bytes], patience: float) -> None:
    until = time.monotonic() + patience
    while not await red():
        if worker.poll() is not None or time.monotonic() > until:
            raise SystemExit("The worker has ended, or the night did not turn red in time: see night.log.")
        await asyncio.sleep(1.0)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed-only", action="store_true", help="store the jobs, and start no worker")
    chosen = parser.parse_args()
    print("Storing the work of the evening …", flush=True)
    await seed()
    if chosen.seed_only:
        print("Done. `rota worker examples/night.py` makes the mess.", flush=True)
        return
    command = [sys.executable, "-m", "rota.cli", "worker", str(Path(__file__).resolve()), *WORKER]
    known = os.environ | {"ROTA_CRASH_LIMIT": "3"}  # fewer than usual: the night is short
    with (
        Path("night.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=known) as worker,
    ):
        try:
            print(
                "A worker runs (its log: night.log). It takes about twenty seconds to get red …", flush=True
            )
            await turn_red(worker, 120.0)
            print(
                "The night is red. In another terminal, in this directory: rota top. Ctrl-C ends it.",
                flush=True,
            )
            await asyncio.to_thread(worker.wait)
        finally:
            worker.terminate()
    await app.close()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("\nThe night is over; the store is in .rota/ (`rota db stop` ends its server).")
