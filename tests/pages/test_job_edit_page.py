"""The same work with other arguments: edit what waits, retry what died, clone anything; what was typed is kept."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from urllib.parse import quote, unquote
from uuid import UUID

import pytest

from build import a_job, a_session, claim, completed, failed
from page_kit import PageSite, paged, words
from rota._core.actions import AuditFilter
from rota._core.failure import ErrorClass
from rota._core.ids import parse_id, public_id
from rota._core.job import Job, State
from rota._core.task_spec import TaskSpec
from rota.admin import Admin
from rota.admin.editing import Edit
from rota.stores.contract import JobFilter
from rota.stores.memory import MemoryStore

HUGE = 9_007_199_254_740_993


@pytest.fixture
async def site() -> AsyncIterator[PageSite]:
    async with paged(MemoryStore()) as site:
        await site.store.publish([task.spec() for task in site.app.tasks.values()])
        yield site


def at(job_id: UUID) -> str:
    return f"/jobs/{quote(public_id(job_id))}"


async def made(site: PageSite, args: dict | None = None, **options) -> UUID:
    job = a_job("mail", args or {"to": "ann", "copies": 1}, **({"queue": "post"} | options))
    await site.store.enqueue([job])
    return job.id


async def dead(site: PageSite, args: dict | None = None, **options) -> UUID:
    job_id = await made(site, args, **options)
    jobs = await claim(site.store, await a_session(site.store, lease=1e6))
    now = await site.store.now()
    [job] = [one for one in jobs if one.id == job_id]
    await site.store.settle([failed(job, ErrorClass.NON_RETRYABLE, "no such address", now=now)])
    return job_id


async def read(site: PageSite, job_id: UUID) -> Job:
    [job] = await site.store.get([job_id])
    return job


async def sent(site: PageSite, job_id: UUID, role: str = "operator", **form: str):
    return await (await site.visitor(role)).post(f"{at(job_id)}/edit", data=form)


def leads_to(answer) -> UUID:
    assert answer.status_code == 303, words(answer)
    return parse_id(unquote(answer.headers["location"].removeprefix("/jobs/")))


async def test_the_form_has_the_arguments_of_the_job_by_its_schema(site):
    page = await (await site.visitor("operator")).get(f"{at(await made(site))}/edit")

    assert "Edit: mail" in words(page)
    assert 'name="arg.to" ' in page.text
    assert 'value="ann"' in page.text
    assert 'inputmode="numeric"' in page.text


async def test_a_waiting_job_is_changed_and_the_rest_stays(site):
    job_id = await made(site, {"to": "ann", "copies": HUGE, "api_token": "hunter2"})
    version = (await read(site, job_id)).version
    form = {"arg.to": "bo", "arg.copies": str(HUGE), "arg.api_token": "***", "version": str(version)}
    answer = await sent(site, job_id, **form, queue="slow", priority="7", reason="moved")

    assert leads_to(answer) == job_id
    job = await read(site, job_id)
    assert json.loads(job.payload_json) == {"to": "bo", "copies": HUGE, "api_token": "hunter2"}
    assert (job.queue, job.priority) == ("slow", 7)
    [row] = await Admin(site.store, actor="tests").trail(AuditFilter(action="edit"))
    assert row.reason == "moved"


@pytest.mark.req("D35")
async def test_a_dead_job_is_retried_with_edits_in_a_new_job(site):
    job_id = await dead(site)
    page = await (await site.visitor("operator")).get(f"{at(job_id)}/edit")
    assert "Retry with edits: mail" in words(page)
    new = leads_to(await sent(site, job_id, **{"arg.to": "bo", "arg.copies": "1"}, reason="typo"))

    assert new != job_id
    assert json.loads((await read(site, new)).payload_json) == {"to": "bo", "copies": 1}
    assert (await read(site, new)).state is State.PENDING
    assert (await read(site, job_id)).review == "reprocessing"


async def test_what_does_not_fit_is_said_beside_it_and_what_was_typed_is_kept(site):
    job_id = await made(site)
    answer = await sent(site, job_id, **{"arg.to": "bo", "arg.copies": "two"}, reason="kept", priority="9")

    assert answer.status_code == 422
    assert "&#34;two&#34; is not a whole number" in answer.text or "is not a whole number" in words(answer)
    for typed in ("bo", "two", "kept", "9"):
        assert f'value="{typed}"' in answer.text, typed
    assert (await read(site, job_id)).payload == {"to": "ann", "copies": 1}


async def test_a_secret_is_not_shown_and_not_overwritten_by_its_stars(site):
    job_id = await dead(site, {"to": "ann", "api_token": "hunter2"})
    page = await (await site.visitor("operator")).get(f"{at(job_id)}/edit")
    assert "hunter2" not in page.text

    new = leads_to(await sent(site, job_id, **{"arg.to": "bo", "arg.api_token": "***"}))
    assert (await read(site, new)).payload["api_token"] == "hunter2"


async def test_a_job_that_was_changed_meanwhile_is_not_overwritten(site):
    job_id = await made(site)
    version = str((await read(site, job_id)).version)
    await Admin(site.store, actor="jana").hold(job_id)
    answer = await sent(site, job_id, **{"arg.to": "bo"}, version=version)

    assert answer.status_code == 409
    assert 'value="bo"' in answer.text
    assert (await read(site, job_id)).payload["to"] == "ann"


@pytest.mark.filterwarnings("ignore:a job of mail carries")
async def test_any_job_can_be_cloned_with_its_terms(site):
    job_id = await made(
        site, {"to": "ann", "api_token": "hunter2"}, subject="order:7", tags=("import",), tenant="red"
    )
    [job] = await claim(site.store, await a_session(site.store, lease=1e6))
    await site.store.settle([completed(job)])
    page = await (await site.visitor("operator")).get(f"{at(job_id)}/edit")
    assert "Clone: mail" in words(page)
    form = {"as": "clone", "arg.to": "ann", "arg.api_token": "***", "queue": "slow", "run_at": "15m"}
    new = await read(site, leads_to(await sent(site, job_id, **form)))

    assert new.payload == {"to": "ann", "api_token": "hunter2"}
    assert (new.queue, new.subject, new.tags, new.tenant) == ("slow", "order:7", ("import",), "red")
    assert 890 < (new.run_at - new.created_at).total_seconds() < 901
    assert (await read(site, job_id)).state is State.COMPLETED


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"priority": "soon"}, "is no priority"),
        ({"run_at": "tomorrow"}, "neither a length of time"),
        ({"arg.to": "bo", "priority": "99999"}, "priority"),
    ],
)
async def test_terms_that_cannot_be_meant_are_said_on_the_form(site, typed, said):
    job_id = await made(site)
    answer = await sent(site, job_id, **({"arg.to": "ann", "arg.copies": "1"} | typed))

    assert answer.status_code == 422
    assert said in words(answer)
    assert "Edit: mail" in words(answer)


async def test_a_task_that_nobody_published_is_edited_as_json_and_refused_in_words(site):
    job = a_job("ghost", {"a": 1, "n": HUGE})
    await site.store.enqueue([job])
    page = await (await site.visitor("operator")).get(f"{at(job.id)}/edit")
    assert str(HUGE) in page.text

    answer = await sent(site, job.id, arg='{"a": 2}')
    assert answer.status_code == 422
    assert "ghost" in words(answer)


async def test_nothing_changed_changes_nothing(site):
    job_id = await made(site)
    before = await read(site, job_id)

    assert leads_to(await sent(site, job_id, **{"arg.to": "ann", "arg.copies": "1"}, queue="post")) == job_id
    assert await read(site, job_id) == before


async def count(site: PageSite) -> int:
    return len(await site.store.find(JobFilter()))


async def test_an_edit_of_a_job_that_started_meanwhile_makes_no_second_job(site):
    job_id = await made(site)
    version = str((await read(site, job_id)).version)
    await claim(site.store, await a_session(site.store, lease=1e6))
    answer = await sent(site, job_id, **{"as": "edit", "arg.to": "bo"}, version=version, reason="typo")

    assert answer.status_code == 409
    assert "has moved on since this form was opened, and is running now" in words(answer)
    assert "It has not started" not in words(answer)
    for typed in ("bo", "typo", "edit"):
        assert f'value="{typed}"' in answer.text, typed
    assert await count(site) == 1


async def test_an_edit_of_a_job_that_died_meanwhile_does_not_reprocess_it(site):
    job_id = await dead(site)

    assert (await sent(site, job_id, **{"as": "edit", "arg.to": "bo"})).status_code == 409
    assert await count(site) == 1


async def test_a_retry_with_edits_of_what_is_done_again_already_makes_no_clone(site):
    job_id = await dead(site)
    version = str((await read(site, job_id)).version)
    form = {"as": "reprocess", "arg.to": "bo", "version": version}
    leads_to(await sent(site, job_id, **form))
    answer = await sent(site, job_id, **form)

    assert answer.status_code == 409
    assert "is dead (reprocessing) now" in words(answer)
    assert await count(site) == 2


async def test_a_retry_with_edits_of_what_somebody_reviewed_meanwhile_is_asked_again(site):
    job_id = await dead(site)
    version = str((await read(site, job_id)).version)
    await Admin(site.store, actor="jana").acknowledge(job_id)
    answer = await sent(site, job_id, **{"as": "reprocess", "arg.to": "bo"}, version=version)

    assert (answer.status_code, await count(site)) == (409, 1)


@pytest.mark.parametrize("guess", ["hunter2", "hunter3"])
async def test_a_guess_at_what_is_hidden_is_answered_alike_whether_it_is_right_or_wrong(site, guess):
    job_id = await made(site, {"to": "ann", "api_token": "hunter2"})
    form = {"arg.to": "ann", "arg.copies": "1", "arg.api_token": guess}
    assert (await sent(site, job_id, **form, version="0")).status_code == 409
    answer = await sent(site, job_id, **form)

    assert leads_to(answer) == job_id
    assert (await read(site, job_id)).payload["api_token"] == guess
    [row] = await Admin(site.store, actor="tests").trail(AuditFilter(action="edit"))
    assert "api_token" in (row.after or "")


@pytest.mark.parametrize(
    ("name", "typed"),
    [("priority", "12345678901"), ("run_at", "x" * 50), ("queue", "q" * 1001), ("reason", "r" * 2001)],
)
async def test_what_is_too_long_is_said_on_the_form_and_the_rest_is_kept(site, name, typed):
    job_id = await made(site)
    answer = await sent(site, job_id, **{"as": "edit", "arg.to": "bo", name: typed})

    assert answer.status_code == 422
    assert f"{name} has {len(typed):,} characters" in words(answer)
    assert 'value="bo"' in answer.text
    assert f'value="{typed[:2000]}"' in answer.text


async def test_a_clone_can_go_without_an_argument_and_an_edit_cannot(site):
    await site.store.publish([TaskSpec("open")])
    job = a_job("open", {"x": 2, "y": 3})
    await site.store.enqueue([job])
    answer = await sent(site, job.id, **{"as": "edit", "arg": '{"y": 3}'})

    assert answer.status_code == 422
    assert "The job has the argument 'x', and it cannot be taken away." in words(answer)
    new = leads_to(await sent(site, job.id, **{"as": "clone", "arg": '{"y": 3}'}))
    assert (await read(site, new)).payload == {"y": 3}


async def test_a_late_change_of_the_priority_does_not_take_back_the_queue_that_somebody_else_set(site):
    job_id = await made(site)
    otto = await site.visitor("operator")
    form = (await otto.get(at(job_id))).text.partition('id="move"')[2].partition("</form>")[0]
    shown = dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', form))
    await Admin(site.store, actor="ann").edit(job_id, Edit(queue="slow"))

    late = await otto.post(f"{at(job_id)}/move", data=shown | {"priority": "7"})
    after = await read(site, job_id)

    assert (shown["queue"], shown["priority"]) == ("post", "100")
    assert late.status_code == 409
    assert "was changed by somebody else meanwhile" in words(late)
    assert (after.queue, after.priority) == ("slow", 100)
    fresh = {"queue": "slow", "priority": "7", "version": str(after.version)}
    assert (await otto.post(f"{at(job_id)}/move", data=fresh)).status_code == 303
    assert (await read(site, job_id)).priority == 7
