"""F31: workers and producers whose clocks are wrong, and change. Only the store's clock counts."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from chaos.orders import Order

ZONES = ["America/St_Johns", "Asia/Kathmandu", "Pacific/Chatham"]


@pytest.fixture(scope="module")
def shim() -> str:
    """The library that tells a process another time."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    assert found, "libfaketime is missing. On Debian: apt-get install faketime (scripts/system.sh does)"
    return str(found[0])


def told(shim: str, ahead: str) -> dict[str, str]:
    """The environment of a process whose clock is ahead by so much (`-600s`: behind); intervals stay right."""
    return {
        "LD_PRELOAD": shim,
        "FAKETIME": ahead,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


@pytest.mark.chaos
@pytest.mark.scenario(8)
@pytest.mark.timeout(600)
def test_workers_and_producers_with_wrong_clocks_keep_all_promises(stage, shim, one_seed, long):
    skews = ["+600s", "-600s", "+86400s"]
    run = stage(
        one_seed, workers=3, slots=4, lease=3.0, beat=0.75,
        each=lambda place: told(shim, skews[place]) | {"TZ": ZONES[place]},
    )  # fmt: skip
    run.begin()
    count = 1000 if long else 100
    for name, skew in {"early": "-3600s", "late": "+3600s"}.items():
        run.produce(
            Order(name, "together", count, ms=80, batch=10, mix=True, pause=0.3, seed=one_seed),
            **told(shim, skew),
        )
        run.produce(Order(f"{name}-delayed", "delayed", 20, ms=5, batch=10, pause=0.3), **told(shim, skew))
    run.nemesis.every(2.0, run.nemesis.kill_a_worker)
    run.produced(300)

    evidence = run.verdict(within=90)

    assert len({effect.pid for effect in evidence.effects}) >= 3
    with psycopg.connect(run.url) as connection:
        made = dict(
            connection.execute("SELECT id::text, extract(epoch FROM created_at)::float8 FROM rota.all_jobs")
        )
    for row in evidence.tables.rows:
        first = evidence.runs[row.job][0]
        late = first.start - made[row.job]
        if "delayed" in row.key:
            assert late > 1.45, f"{row.key} was delayed by 1.5 s and began after {late:.2f} s"
        assert -0.01 < late < 30, f"{row.key} began {late:.1f} s after it was enqueued"


@pytest.mark.chaos
def test_a_clock_that_is_set_back_an_hour_and_then_forward_changes_nothing(stage, shim, one_seed, tmp_path):
    """One worker, so that nobody else can do what it leaves undone; its beats go on, and no lease is past."""
    clock = tmp_path / "clock"
    clock.write_text("+0\n")
    moving = told(shim, "") | {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1"}
    del moving["FAKETIME"]
    run = stage(one_seed, workers=1, slots=4, lease=2.0, beat=0.5, more=moving)
    run.begin()
    run.produce(Order("a", "together", 150, ms=50, batch=5, mix=True, pause=0.2, seed=one_seed))
    for number, ahead in enumerate(["-3600", "+0", "+3600", "+0"]):
        run.seen(lambda effects, number=number: len(effects) > 10 + 30 * number, within=30)
        clock.write_text(f"{ahead}\n")
        run.nemesis.note(f"the worker's clock is {ahead} s from right")
    run.produced(60)

    evidence = run.verdict(within=30)

    assert {tried.error_class for tried in evidence.tables.tried} <= {"retryable"}
    assert len(evidence.tables.lives) == 1, "the worker gave its session up"
