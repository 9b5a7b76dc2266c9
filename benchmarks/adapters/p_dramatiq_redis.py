import os, dramatiq
from dramatiq.brokers.redis import RedisBroker
from hits import hit

SLOTS = 8  # threads
SIZES = {"bulk": 10_000, "drain100": 10_000, "drain8": 10_000, "concurrent": 5_000}
CONFIG = "1 process, 8 threads (its default) whatever the slots, no middleware; no bulk call: sends in a loop"
PENDING = ["HLEN dramatiq:default.msgs"]
if os.environ["BENCH_URL"] != "none":
    dramatiq.set_broker(RedisBroker(url=os.environ["BENCH_URL"], middleware=[]))

    @dramatiq.actor(actor_name="noop")
    def noop(t0):
        hit(t0)


def open(url):
    pass


def enqueue(t0):
    noop.send(t0)


def enqueue_many(n):
    for _ in range(n):
        noop.send(0.0)


def worker(url, slots):
    os.execvp("dramatiq", ["dramatiq", "p_dramatiq_redis", "--processes", "1", "--threads", str(slots)])
