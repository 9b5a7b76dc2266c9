"""What does not belong into a payload is found, however deep; what only looks like it is left alone."""

from __future__ import annotations

import pytest

from rota._core.sensitive import findings, is_card, suspicious
from sensitive_samples import FOUND, LEFT_ALONE


@pytest.mark.req("W5", "W38")
@pytest.mark.parametrize(("payload", "said"), FOUND, ids=[said for _, said in FOUND])
def test_secrets_and_content_are_found_by_name_and_by_looks(payload, said):
    assert said in [str(found) for found in findings(payload)]


@pytest.mark.parametrize("payload", LEFT_ALONE, ids=lambda payload: ",".join(payload))
def test_references_and_harmless_texts_are_left_alone(payload):
    assert list(findings(payload)) == []


def test_every_finding_is_named_with_its_place():
    found = findings({"password": "a", "nested": [{"token": "b"}], "id": 1})

    assert [one.path for one in found] == ["password", "nested[0].token"]


def test_what_an_app_allows_by_name_or_by_path_is_not_looked_at():
    payload = {"token": "a", "user": {"secret": "b"}, "secret": "c"}

    assert [one.path for one in findings(payload, allow=("token", "user.secret"))] == ["secret"]


@pytest.mark.parametrize(
    "number",
    ["4111111111111111", "5555-5555-5555-4444", "2223003122003222", "378282246310005", "6011111111111117",
     "3530111333300000", "30569309025904", "4222222222222"],
)  # fmt: skip
def test_card_numbers_are_told_by_brand_and_sum(number):
    assert is_card(number)
    assert not is_card(number[:-1] + str((int(number[-1]) + 1) % 10))


def test_names_decide_whether_a_task_is_worth_a_look():
    assert suspicious({"to", "userPassword"})
    assert suspicious({"body"})
    assert not suspicious({"to", "template", "account_id", "token_count"})
