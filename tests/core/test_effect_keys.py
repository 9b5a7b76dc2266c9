"""Effect keys: one name outside for one piece of work, however often it is run."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest

from build import a_stored_job
from rota._core.effects import HEADER, continued_headers, effect_key
from rota._core.job import State


def test_the_key_is_the_same_at_every_attempt_and_after_a_retry_by_hand():
    first = a_stored_job(attempt=1)
    later = first._replace(attempt=4, version=9, losses=2)
    by_hand = first._replace(attempt=1, version=12)

    assert effect_key(first) == effect_key(later) == effect_key(by_hand) == str(first.id)


def test_two_jobs_have_two_keys_even_with_the_same_arguments():
    assert effect_key(a_stored_job(id=uuid4())) != effect_key(a_stored_job(id=uuid4()))


def test_a_job_that_continues_a_dead_one_keeps_its_key_however_long_the_chain():
    dead = a_stored_job(State.DEAD, headers_json='{"trace": "abc"}')
    second = a_stored_job(State.DEAD, id=uuid4(), headers_json=continued_headers(dead))
    third = a_stored_job(id=uuid4(), headers_json=continued_headers(second))

    assert effect_key(third) == effect_key(second) == str(dead.id)
    assert json.loads(third.headers_json) == {"trace": "abc", HEADER: str(dead.id)}


def test_each_part_has_a_key_of_its_own_that_is_as_stable():
    job = a_stored_job()
    again = job._replace(attempt=3, version=7)
    continued = a_stored_job(id=uuid4(), headers_json=continued_headers(job))

    charge = effect_key(job, "charge")

    assert charge == effect_key(again, "charge") == effect_key(continued, "charge")
    assert len({charge, effect_key(job, "mail"), effect_key(job)}) == 3


def test_every_key_is_a_uuid_so_that_it_fits_wherever_a_key_may_go():
    job = a_stored_job()

    for part in ("charge", "mail to ann@example.org", "täglich", "x" * 5000):
        assert str(UUID(effect_key(job, part))) == effect_key(job, part)


def test_a_part_without_a_name_is_refused():
    with pytest.raises(ValueError, match="part of an effect key is empty"):
        effect_key(a_stored_job(), "")


def test_a_key_that_came_from_elsewhere_is_kept_as_it_is():
    job = a_stored_job(headers_json=json.dumps({HEADER: "order-7"}))

    assert effect_key(job) == "order-7"
    assert UUID(effect_key(job, "charge"))


@pytest.mark.parametrize("headers", ["{}", '{"rota.effect_key": ""}', '{"rota.effect_key": null}'])
def test_headers_without_a_key_leave_the_job_its_own(headers):
    job = a_stored_job(headers_json=headers)

    assert effect_key(job) == str(job.id)
