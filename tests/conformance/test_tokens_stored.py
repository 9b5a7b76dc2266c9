"""Tokens as records: "their texts never reach a store, only what proves them"."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from build import Clock
from rota._core.actions import Audit
from rota._core.token import Role, Token, digest_of
from rota.stores.contract import Store


def a_token(token_id: str = "abcdefgh2345", **fields) -> Token:
    values = {"tenant": "acme", "created_by": "ann"} | fields
    return Token(token_id, "grafana", Role.OPERATOR, digest_of(token_id), **values)


def told(token: Token, action: str = "token_created") -> Audit:
    return Audit("ann", action, None, about=token.about)


async def stored(store: Store, clock: Clock, **fields) -> Token:
    token = a_token(**fields)
    await store.create_token(token, told(token))
    return token._replace(created_at=clock.now)


async def test_a_token_is_stored_as_it_is_and_once(store: Store, clock: Clock):
    token = await stored(store, clock, expires_at=clock.now + timedelta(days=1))
    await store.create_token(token._replace(role=Role.MANAGER), told(token))

    assert await store.tokens(token_id=token.id) == [token]
    assert [row.action for row in await store.audit(about=token.about)] == ["token_created"]


async def test_tokens_are_listed_newest_first(store: Store, clock: Clock):
    first = await stored(store, clock, token_id="zzzzzzzz2222", tenant=None)
    clock.advance(1)
    second = await stored(store, clock)

    assert await store.tokens() == [second, first]
    assert await store.tokens(token_id="nobodysssss7") == []


async def test_a_revoked_token_stays_known_and_is_revoked_once(store: Store, clock: Clock):
    token = await stored(store, clock)
    clock.advance(60)
    answers = await asyncio.gather(
        *(store.revoke_token(token.id, who, told(token, "token_revoked")) for who in ("ann", "bob"))
    )

    done = [answer for answer in answers if answer is not None]
    assert len(done) == 1
    revoked = done[0]
    assert (revoked.revoked_at, revoked.state(clock.now)) == (clock.now, "revoked")
    assert await store.tokens() == [revoked]
    assert [row.action for row in await store.audit(about=token.about)] == ["token_revoked", "token_created"]
    assert await store.revoke_token("nobodysssss7", "ann", told(token, "token_revoked")) is None


async def test_use_is_noted_once_a_minute(store: Store, clock: Clock):
    token = await stored(store, clock)
    seen = []
    for seconds in (0, 30, 60):
        clock.now = token.created_at + timedelta(seconds=seconds)
        await store.note_token_used(token.id)
        seen.append((await store.tokens())[0].last_used_at)

    assert seen == [token.created_at, token.created_at, token.created_at + timedelta(seconds=60)]
