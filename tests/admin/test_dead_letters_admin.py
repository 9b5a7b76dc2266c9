"""Dead letters as an operator has them: looked at, reviewed, reprocessed, one by one."""

from __future__ import annotations

import asyncio
import json

import pytest

from build import new_id, read
from rota._core.actions import AuditFilter, Verb
from rota._core.dead_letter import DeadFilter
from rota._core.job import State
from rota._core.review import REQUESTED, SUCCESS, Review, ReviewVerb
from rota._core.rules import TaskRules
from rota._core.task_spec import TaskSpec
from rota.admin import Admin
from rota.errors import (
    GroupNotFound,
    JobChanged,
    JobNotFound,
    MoveRefused,
    PayloadInvalid,
    SensitiveContent,
    UnknownTask,
)

SCHEMA = {
    "properties": {"to": {"type": "string"}, "times": {"type": "integer"}},
    "required": ["to"],
    "additionalProperties": False,
}


@pytest.fixture
async def dead(shop, store):
    """A dead letter of a task that is published."""
    await store.publish([TaskSpec("mail", schema_json=json.dumps(SCHEMA))])
    return await shop.dead(payload={"to": "a@b.c"}, correlation_id="c-1")


async def test_a_dead_letter_is_shown_with_its_attempts_and_what_was_done(admin: Admin, dead):
    await admin.acknowledge(dead, reason="ticket 12")
    view = await admin.show_dead_letter(dead)

    assert (view.letter.review, view.letter.notes) == (Review.ACKNOWLEDGED, "ticket 12")
    assert [seen.message for seen in view.attempts] == ["no such address"]
    [row] = view.audit
    assert (row.actor, row.action, row.correlation_id) == ("ann@office", "job_dlq_acknowledged", "c-1")
    assert view.new_job is None


@pytest.mark.parametrize(("verb", "stands"), [("acknowledge", "acknowledged"), ("discard", "discarded")])
async def test_a_review_is_closed_with_who_and_why(admin: Admin, store, dead, verb, stands):
    done = await getattr(admin, verb)(dead, reason="customer told")

    assert done.before == "pending_review"
    letter = await admin.dead_letter(dead)
    assert (letter.review.value, done.after) == (stands, stands)
    assert (letter.reviewed_by, letter.notes) == ("ann@office", "customer told")


async def test_a_closed_review_is_refused_with_what_to_do_instead(admin: Admin, dead):
    await admin.discard(dead, reason="test")

    with pytest.raises(MoveRefused) as refused:
        await admin.acknowledge(dead, reason="late")
    assert str(refused.value) == (
        f"cannot acknowledge job {dead}: it is discarded. "
        "It was given up; `rota jobs retry` still runs it again in place."
    )


async def test_what_is_not_dead_is_no_dead_letter(admin: Admin, shop):
    job_id = await shop.add()

    with pytest.raises(MoveRefused, match=f"cannot review job {job_id}: it is pending. Only a dead job is"):
        await admin.discard(job_id, reason="x")
    with pytest.raises(JobNotFound):
        await admin.dead_letter(new_id())


@pytest.mark.req("W33", "W34")
async def test_reprocessing_makes_a_linked_job_and_tells_the_audit_twice_at_once(
    admin: Admin, store, shop, dead
):
    done = await admin.reprocess(dead, reason="mail server is back")
    new = await read(store, done.new_job)

    assert (new.state, new.payload, new.parent_id) == (State.PENDING, {"to": "a@b.c"}, dead)
    assert (new.correlation_id, new.created_by) == ("c-1", "ann@office")
    success, requested = await admin.trail(AuditFilter(job_id=dead))
    assert (requested.action, success.action) == (REQUESTED, SUCCESS)
    assert (requested.after, success.after) == ("reprocessing", f"job {new.id}")
    assert requested.at == success.at
    await shop.finish(await shop.run(new.id))
    await store.settle_reviews()
    view = await admin.show_dead_letter(dead)
    assert (view.letter.review, view.new_job.state) == (Review.RESOLVED, State.COMPLETED)


@pytest.mark.scenario(14)
async def test_two_who_click_at_once_get_one_job(admin: Admin, store, dead):
    bob = Admin(store, actor="bob@office")
    first, second = await asyncio.gather(admin.reprocess(dead), bob.reprocess(dead))
    third = await admin.reprocess(dead)

    assert first.new_job == second.new_job == third.new_job
    assert [first.already, second.already].count(True) == 1
    assert third.already
    assert [row.action for row in await admin.trail(AuditFilter(job_id=dead))] == [SUCCESS, REQUESTED]


@pytest.mark.scenario(14)
async def test_a_task_that_nobody_knows_any_more_is_refused(admin: Admin, store, shop):
    job_id = await shop.dead("gone")

    with pytest.raises(UnknownTask, match="no task named 'gone'"):
        await admin.reprocess(job_id)
    assert (await admin.dead_letter(job_id)).review is Review.PENDING
    assert await admin.trail(AuditFilter(job_id=job_id)) == []


async def test_edited_arguments_are_laid_over_the_payload_and_the_audit_names_them_without_values(
    admin: Admin, store, dead
):
    done = await admin.reprocess(dead, edits={"to": "x@y.z", "times": 2})

    assert (await read(store, done.new_job)).payload == {"to": "x@y.z", "times": 2}
    assert (await read(store, dead)).payload == {"to": "a@b.c"}
    requested = (await admin.trail(AuditFilter(job_id=dead)))[-1]
    assert requested.after == "reprocessing with times, to edited"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"too": "x"}, "mail has no argument 'too'. Did you mean 'to'?"),
        ({"times": "many"}, 'mail: times is "many", and must be integer.'),
        ({"to": "a\x00b"}, "mail cannot be reprocessed so: to"),
    ],
)
async def test_an_edit_that_does_not_fit_the_task_is_refused(admin: Admin, dead, edits, said):
    with pytest.raises(PayloadInvalid) as refused:
        await admin.reprocess(dead, edits=edits)

    assert said in str(refused.value)
    assert (await admin.dead_letter(dead)).review is Review.PENDING


async def test_an_edit_keeps_the_rules_of_the_app(admin: Admin, store, shop):
    from rota._core.payload_rules import Policy

    await store.publish([TaskSpec("mail", rules=TaskRules(policy=Policy(refuse=True)))])
    job_id = await shop.dead(payload={"to": "a@b.c"})

    with pytest.raises(SensitiveContent):
        await admin.reprocess(job_id, edits={"password": "hunter2hunter2"})


async def test_a_plan_changes_nothing(admin: Admin, dead):
    done = await admin.plan_review(ReviewVerb.REPROCESS, dead, edits={"to": "x"})

    assert (done.before, done.after) == ("pending_review", "reprocessing")
    assert (await admin.dead_letter(dead)).review is Review.PENDING


@pytest.mark.parametrize("verb", [Verb.RETRY, Verb.DELETE])
async def test_what_is_being_reprocessed_is_not_run_or_removed_beside_it(admin: Admin, dead, verb):
    done = await admin.reprocess(dead)

    with pytest.raises(MoveRefused, match="A new job does its work now"):
        await getattr(admin, verb.value)(dead)
    assert (await admin.dead_letter(dead)).reprocessed_as == done.new_job


async def test_groups_are_shown_with_their_members_and_a_stack(admin: Admin, shop, dead):
    other = await shop.dead()
    [group] = await admin.failures(DeadFilter())
    view = await admin.failure(group.fingerprint)

    assert (group.letters, group.task) == (2, "mail")
    assert [letter.job.id for letter in view.letters] == [other, dead]
    assert view.stack == "Traceback: boom"
    assert (await admin.failure(group.fingerprint[:5])).group == group
    with pytest.raises(GroupNotFound, match=f"did you mean '{group.fingerprint}'"):
        await admin.failure(f"{group.fingerprint[:-1]}-")


async def test_one_who_is_always_late_hears_it(admin: Admin, store, dead, monkeypatch):
    real = store.change_review

    async def too_late(change, audit):
        return await real(change._replace(version=change.version - 1), audit)

    monkeypatch.setattr(store, "change_review", too_late)
    with pytest.raises(JobChanged, match="is pending_review now"):
        await admin.acknowledge(dead, reason="x")


async def test_one_who_saw_an_older_version_hears_it(admin: Admin, store, dead):
    seen = (await admin.dead_letter(dead)).job.version
    await Admin(store, actor="bob").acknowledge(dead, reason="known")

    with pytest.raises(JobChanged, match="is acknowledged now"):
        await admin.discard(dead, reason="late", version=seen)
    assert (await admin.discard(dead, reason="now", version=seen + 1)).after == "discarded"
