import os
from huey import RedisHuey
from huey.consumer import Consumer
from hits import hit

SLOTS = 8  # threads
SIZES = {"bulk": 10_000, "drain100": 10_000, "drain8": 10_000, "concurrent": 5_000}
CONFIG = "8 threads whatever the slots, no results kept; no bulk call: sends in a loop; it forgets a job when it takes it"
PENDING = ["LLEN huey.redis.bench"]
if os.environ["BENCH_URL"] != "none":
    huey = RedisHuey("bench", url=os.environ["BENCH_URL"], results=False)

    @huey.task(name="noop")
    def noop(t0):
        hit(t0)


def open(url):
    pass


def enqueue(t0):
    noop(t0)


def enqueue_many(n):
    for _ in range(n):
        noop(0.0)


def worker(url, slots):
    Consumer(huey, workers=slots, periodic=False).run()
