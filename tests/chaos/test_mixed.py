"""Everything at once, from one seed: processes, server and network are hurt in a dozen ways while jobs flow."""

from __future__ import annotations

import time

import pytest

from chaos import ledger
from chaos.disasters import Disasters
from chaos.failpoints import Failpoint
from chaos.orders import Order

LEASE = 4.0


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("supervised", [0, 2], ids=["alone", "supervised"])
def test_all_faults_at_once_break_no_promise(
    stage_there, own_server, proxy_to, seed, long, supervised, pytestconfig
):
    """Prints what was done; a failure adds the shortest history of a job that shows what is wrong."""
    proxy = proxy_to(own_server.url)
    falls = {"CHAOS_FAIL": Failpoint("before_settle", "die", chance=0.002, skip=2).as_json()}
    run = stage_there(
        seed, workers=2 if supervised else 4, slots=6, lease=LEASE, beat=1.0, through=proxy.url,
        supervised=supervised, each=lambda place: falls if place == 0 else {},
    )  # fmt: skip
    run.begin()
    seconds = pytestconfig.getoption("--hurt") or (120 if long else 12)
    for mode, batch in {"together": 8, "keyed": 4, "bulk": 20}.items():
        for tenant in ("acme", "zenith"):
            count = round(seconds * 4 * (2 if mode == "bulk" else 1))
            pause = seconds * batch / count * 0.8
            order = Order(
                f"{mode}-{tenant}", mode, count, ms=120, batch=batch, mix=True, pause=pause, seed=seed
            )
            run.produce(order._replace(tenant=tenant, patience=120.0))
    run.seen(lambda effects: len(effects) > 5, within=60)
    disasters = Disasters(run, own_server, proxy, LEASE)
    disasters.begin(hands=3, every=1.5)
    try:
        time.sleep(seconds)
        run.nemesis.stop()
        proxy.rule = lambda _: None
        run.produced(240)
        run.verdict(within=120)
    finally:
        one = ledger.entry(run, disasters, seconds)
        print(f"seed {seed}, {one.starts} starts of {one.jobs} jobs, {one.harms}\n{run.nemesis.told()}")
        if path := pytestconfig.getoption("--record"):
            ledger.record(path, one)

    assert len(disasters.done) >= (10 if seconds >= 100 else 4)
    assert one.jobs > seconds * 10
    assert run.fleet.exits == []
