"""What the machine may choose from: few values of each kind, so that choices collide often."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from rota._core.failure import ErrorClass, Failure
from rota._core.job import OnDuplicate, Scope
from rota._core.outcome import Cancelled, Expired, HandedBack, Outcome, Raised, Returned, Snoozed
from rota._core.retry import Retry

QUEUES = ("a", "b")
GATED = "gated"

payloads = st.sampled_from([{"n": 1}, {"n": 2}, {"m": [1, {"x": None}]}]).map(json.dumps)

plain: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "task": st.sampled_from(["email", "email", "email", "report"]),
        "payload_json": payloads,
        "queue": st.sampled_from(QUEUES),
        "priority": st.sampled_from([10, 100]),
        "max_attempts": st.integers(1, 3),
        "delay": st.sampled_from([0.0] * 5 + [5.0, 60.0]),
        "deadline_in": st.sampled_from([None] * 5 + [30.0]),
        "tenant": st.sampled_from([None, None, None, "acme"]),
        "held": st.sampled_from([False] * 7 + [True]),
    }
)
keyed = st.fixed_dictionaries(
    {"key": st.sampled_from(["k1", "k2"]), "key_window": st.sampled_from([20.0, 600.0])}
)
# Each scope has keys of its own, so that the machine can say how many jobs may wait with one.
unique = st.tuples(
    st.sampled_from([Scope.STARTED, *Scope]), st.sampled_from(OnDuplicate), st.sampled_from([15.0, 120.0])
).map(
    lambda chosen: {
        "unique_key": f"until {chosen[0]}",
        "unique_scope": chosen[0],
        "on_duplicate": chosen[1],
        "unique_window": chosen[2] if chosen[0] is Scope.WINDOW else None,
    }
)
gated = st.fixed_dictionaries({"gate": st.sampled_from(["g1", "g2"]), "queue": st.just(GATED)})

options = st.tuples(
    plain,
    st.one_of(
        st.just({}),
        keyed,
        unique,
        unique,
        gated,
        st.tuples(keyed, unique).map(lambda both: both[0] | both[1]),
        st.tuples(gated, unique).map(lambda both: both[0] | both[1]),
    ),
).map(lambda parts: parts[0] | parts[1])


def failure(error_class: ErrorClass) -> Failure:
    return Failure(error_class, "ValueError", f"{error_class} happened", "stack")


outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.sampled_from([Returned(), Returned('{"done": [1, null]}'), Returned("[1]", partial=True)]),
    st.sampled_from(ErrorClass).map(lambda kind: Raised(failure(kind))),
    st.sampled_from([Snoozed(0.0), Snoozed(45.0, "not yet")]),
    st.sampled_from([Cancelled(), Cancelled("asked")]),
    st.just(HandedBack()),
    st.just(Expired()),
)
policies = st.sampled_from([Retry(), Retry.lipas(), Retry.never(), Retry(max_snoozes=1)])
pauses = st.sampled_from([0.5, 1.0, 4.0, 16.0, 100.0, 1000.0])
