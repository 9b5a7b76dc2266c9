"""F32, F33, I8: two schedulers are killed again and again while the clocks change: no tick twice, none missing."""

from __future__ import annotations

import pytest

from chaos.ticks import fly


@pytest.mark.chaos
@pytest.mark.scenario(19)
@pytest.mark.req("L25")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("half", ["spring", "autumn"])
def test_two_schedulers_that_are_killed_take_every_tick_once_over_changes_of_the_clocks(
    fresh_database, tmp_path, seed, long, half
):
    flown = fly(fresh_database, tmp_path, seed=seed, half=half, long=long)

    assert len(flown.due) >= 500, "with the other half more than a thousand"
    assert flown.violations == [], f"seed {seed}, {half}, {flown.kills} kills"
    assert len(flown.fired) == len(flown.due)
    assert (flown.double, flown.missed) == (0, 0)
    assert flown.kills > 1
