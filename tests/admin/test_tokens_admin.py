"""Tokens as people make, use and revoke them."""

from __future__ import annotations

import pytest

from build import Clock
from rota._core.token import FORM, Role
from rota.admin import Admin
from rota.admin.tokens import TokenNotFound, TokenRevoked
from rota.errors import ConfigError, StoreUnavailable

HOUR = 3600.0


async def test_a_token_is_known_by_its_text_which_is_kept_nowhere(admin: Admin):
    made = await admin.create_token("grafana", role=Role.OPERATOR, tenant="acme")

    assert FORM.fullmatch(made.text)
    found = await admin.check_token(made.text)
    assert (found.role, found.tenant) == (Role.OPERATOR, "acme")
    everything = repr(await admin.store.tokens()) + repr(await admin.store.audit())
    assert made.text not in everything
    assert FORM.fullmatch(made.text)["secret"] not in everything


async def test_no_two_tokens_are_alike(admin: Admin):
    made = [await admin.create_token("one") for _ in range(20)]

    assert len({new.text for new in made}) == len({new.token.id for new in made}) == 20


async def test_a_token_counts_until_it_expires(admin: Admin, clock: Clock):
    made = await admin.create_token("tonight", lasts=HOUR)
    clock.advance(HOUR - 1)
    assert await admin.check_token(made.text) is not None
    clock.advance(1)

    assert await admin.check_token(made.text) is None


async def test_a_revoked_token_is_refused_at_once_and_the_audit_says_who_and_why(admin: Admin):
    made = await admin.create_token("grafana", reason="dashboards")
    revoked = await admin.revoke_token(made.token.id, reason="laptop lost")

    assert await admin.check_token(made.text) is None
    assert revoked.revoked_by == "ann@office"
    rows = await admin.store.audit(about=made.token.about)
    assert [(row.action, row.actor, row.reason) for row in rows] == [
        ("token_revoked", "ann@office", "laptop lost"),
        ("token_created", "ann@office", "dashboards"),
    ]
    assert rows[1].after.startswith("grafana: viewer of every tenant, until")


async def test_a_leaked_text_is_enough_to_revoke_it(admin: Admin):
    made = await admin.create_token("leaked")

    assert (await admin.revoke_token(made.text)).id == made.token.id


async def test_what_cannot_be_revoked_says_why(admin: Admin):
    made = await admin.create_token("grafana")
    await admin.revoke_token(made.token.id)

    with pytest.raises(TokenRevoked, match=r"was revoked by ann@office .* `rota token create` makes another"):
        await admin.revoke_token(made.token.id)
    with pytest.raises(TokenNotFound, match=r"no token has the id 'nobody'. `rota token list`"):
        await admin.revoke_token("nobody")


async def test_a_token_that_is_not_known_here_is_not_repeated_aloud(admin: Admin):
    text = (await admin.create_token("grafana")).text
    secret = FORM.fullmatch(text)["secret"]

    for pasted in (text.replace(secret, secret[::-1]), text[:-1], text[5:], f" {text}", secret):
        with pytest.raises(TokenNotFound) as told:
            await admin.revoke_token(pasted)
        assert secret[:20] not in str(told.value)
        assert secret[::-1][:20] not in str(told.value)
        assert "***" in str(told.value)


async def test_a_wrong_or_foreign_text_is_nobody(admin: Admin):
    made = await admin.create_token("grafana")
    wrong = made.text[:-1] + ("0" if made.text[-1] != "0" else "1")

    for text in ("", "secret", wrong, made.text.replace("rota_", "gota_")):
        assert await admin.check_token(text) is None


async def test_when_it_was_last_used_is_known(admin: Admin, clock: Clock):
    made = await admin.create_token("grafana")
    clock.advance(90)
    await admin.check_token(made.text)

    assert (await admin.tokens())[0].last_used_at == clock.now


async def test_a_use_that_cannot_be_noted_keeps_nobody_out(admin: Admin, monkeypatch):
    made = await admin.create_token("grafana")

    async def away(_: str) -> None:
        raise StoreUnavailable("a disk that is full")

    monkeypatch.setattr(admin.store, "note_token_used", away)

    assert await admin.check_token(made.text) is not None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": " "}, "a token's name must have 1 to 100 characters, not 1. Say who"),
        ({"name": "x" * 101}, "not 101"),
        ({"name": "x", "tenant": ""}, "must not be empty; leave it out for all tenants"),
        ({"name": "x", "lasts": 0}, "must last longer than 0 seconds; 90d is usual"),
    ],
)
async def test_a_token_that_makes_no_sense_is_refused(admin: Admin, fields, said):
    with pytest.raises(ConfigError, match=said):
        await admin.create_token(**fields)
