"""What is not well with the store is said where people look at the work, with what to do next."""

from __future__ import annotations

import pytest

from rota._core.room import Room
from rota.admin.store_alerts import store_alerts

WELL = Room("PostgreSQL", "18.4", schema=13, needed=13, connections=10, most_connections=100)


def test_a_store_that_is_well_raises_nothing_and_one_that_is_not_known_neither():
    assert store_alerts(WELL, ahead=0.4) == []
    assert store_alerts(None) == []
    assert store_alerts(Room("memory"), ahead=1e6) == []


@pytest.mark.parametrize(
    ("room", "ahead", "bad", "said", "do"),
    [
        (WELL._replace(schema=12), 0.0, True, "it has version 12, this code needs 13", "rota migrate"),
        (WELL._replace(read_only=True), 0.0, False, "takes no changes: it is a replica", "primary"),
        (WELL._replace(connections=95), 0.0, False, "95 of 100 connections", "pooler"),
        (
            WELL._replace(oldest_transaction=660.0, oldest_by="psql"),
            0.0,
            False,
            "a transaction of psql is 11m old and holds vacuum back",
            "rota doctor",
        ),
        (WELL, 3.0, False, "the store's clock is 3s ahead of this machine's", "NTP"),
        (WELL, -90.0, False, "the store's clock is 1m 30s behind this machine's", "NTP"),
    ],
)
def test_what_is_not_well_is_said_with_what_to_do(room, ahead, bad, said, do):
    [alert] = store_alerts(room, ahead)

    assert (alert.bad, alert.about) == (bad, "system")
    assert said in alert.what
    assert do in alert.do
