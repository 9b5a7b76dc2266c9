"""The audit as a chain: every store seals what it adds, and the same rows get the same seals."""

from __future__ import annotations

import asyncio

from build import a_job, a_running_job, by_hand
from rota._core.actions import Audit, AuditFilter, Verb
from rota._core.origin import acting_from
from rota._core.seal import digest_of, sealed
from rota.admin import Admin


async def test_an_audit_that_nobody_touched_is_as_it_was_written(store):
    for _ in range(3):
        await by_hand(store, await a_running_job(store), Verb.KILL, reason="stuck")
    await store.note(Audit("ann", "looked", None, "für Müller, Ⅷ \U0001f511", "", None, about="token:x"))

    found = await Admin(store, actor="ann").verify_audit()

    assert (found.rows, found.removed, found.fault) == (4, 0, None)
    assert len(found.head) == 64


async def test_seals_are_the_same_whoever_makes_them(store):
    job = a_job()
    await store.enqueue([job])
    await by_hand(store, (await store.get([job.id]))[0], Verb.HOLD, reason="wait, 1:a")
    await store.note(Audit("ann", "looked", None))
    one, two = await store.seals(0, limit=10)

    first = sealed(None, one.seal.row, one.audit)
    assert (one.seal, two.seal) == (first, sealed(first, two.seal.row, two.audit))
    assert await store.seals(1, limit=10) == [two]


async def test_an_audit_without_rows_is_in_order(store):
    found = await Admin(store, actor="ann").verify_audit()

    assert (found.rows, found.head, found.fault) == (0, "", None)


async def test_those_who_act_at_once_stand_in_one_chain(store):
    await asyncio.gather(
        *(store.note(Audit(f"ann{n}", "looked", None, about=f"token:{n}")) for n in range(20))
    )

    found = await Admin(store, actor="ann").verify_audit()

    assert (found.rows, found.fault) == (20, None)


async def test_a_head_that_was_written_down_is_found_again_and_a_foreign_one_is_not(store):
    admin = Admin(store, actor="ann")
    await store.note(Audit("ann", "looked", None))
    head = (await admin.verify_audit()).head
    await store.note(Audit("bob", "looked", None))

    assert (await admin.verify_audit(head)).fault is None
    assert "nowhere in the chain" in str((await admin.verify_audit("0" * 64)).fault)


async def test_where_an_action_came_from_is_kept_with_it(store):
    with acting_from("10.0.0.7, request abc"):
        await store.note(Audit("ann", "looked", None))
    await store.note(Audit("bob", "looked", None))

    bob, ann = await store.audit_trail(AuditFilter())

    assert (ann.origin, bob.origin) == ("10.0.0.7, request abc", None)
    assert digest_of(1, ann) != digest_of(1, ann._replace(origin=None))
