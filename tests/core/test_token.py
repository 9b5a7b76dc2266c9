"""Tokens: their form, what they may do, and when they count."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime, timedelta

import pytest

from rota._core.redaction import redacted_text
from rota._core.token import FORM, Role, Token, accepted, digest_of, id_in, is_text_of, text_of, use_is_news

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
TEXT = text_of("abcdefgh2345", "S" * 40)
TOKEN = Token("abcdefgh2345", "grafana", Role.VIEWER, digest_of(TEXT))


def test_a_token_has_a_form_that_leak_scanners_can_look_for():
    assert FORM.search(f"curl -H 'Authorization: Bearer {TEXT}'")[0] == TEXT
    assert id_in(TEXT) == TOKEN.id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rota_",
        TEXT[:-1],
        TEXT + "0",
        TEXT.replace("S", "T", 1),
        TEXT.upper(),
        f" {TEXT}",
        "é" * 60,
        "\x00",
    ],
)
def test_what_was_never_a_token_is_known_without_asking_the_store(text):
    assert id_in(text) is None


def test_a_token_in_a_text_is_hidden_from_people_logs_and_the_audit():
    assert redacted_text(f"leaked: {TEXT}, revoke it") == "leaked: ***, revoke it"


def test_only_the_right_text_of_a_token_that_counts_is_accepted():
    other = text_of(TOKEN.id, "T" * 40)

    assert accepted(TEXT, TOKEN, NOW)
    assert not accepted(other, TOKEN, NOW)
    assert not accepted(TEXT, None, NOW)
    assert not accepted(TEXT, TOKEN._replace(expires_at=NOW), NOW)
    assert accepted(TEXT, TOKEN._replace(expires_at=NOW + timedelta(seconds=1)), NOW)
    assert not accepted(TEXT, TOKEN._replace(revoked_at=NOW), NOW)


@pytest.mark.parametrize("stored", ["the right one", "another", "none"])
def test_whatever_is_wrong_with_a_token_the_same_is_done_to_find_out(monkeypatch, stored):
    """Time is not measured: on a busy machine it says nothing. What is compared, how often and by what is counted."""
    token = {"the right one": TOKEN, "another": TOKEN._replace(digest=digest_of("another")), "none": None}[
        stored
    ]
    compared: list[tuple[int, int]] = []

    def counted(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", counted)

    assert is_text_of(TEXT, token) is (stored == "the right one")
    assert compared == [(64, 64)]


def test_each_role_may_do_what_the_ones_before_it_may():
    allowed = {(one.value, needed.value) for one in Role for needed in Role if one.allows(needed)}

    assert allowed == {
        ("viewer", "viewer"),
        ("operator", "viewer"),
        ("operator", "operator"),
        ("manager", "viewer"),
        ("manager", "operator"),
        ("manager", "manager"),
    }


def test_a_token_says_what_it_is():
    assert str(TOKEN) == "viewer of every tenant"
    assert str(TOKEN._replace(tenant="acme")) == "viewer of tenant acme"


def test_use_is_news_once_a_minute():
    used = TOKEN._replace(last_used_at=NOW)

    assert use_is_news(TOKEN, NOW)
    assert not use_is_news(used, NOW + timedelta(seconds=59))
    assert use_is_news(used, NOW + timedelta(seconds=60))
