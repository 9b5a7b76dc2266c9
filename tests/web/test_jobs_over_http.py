"""Jobs over HTTP: lists in pages, one by either id, its attempts, logs, family and why it waits, and the verbs."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from uuid import UUID

import pytest

from build import a_job, a_session, claim, completed, failed, new_id
from rota._core.failure import ErrorClass
from rota._core.ids import public_id
from rota._core.job_log import LogTail, kept_line
from rota.stores.retention_contract import Retention
from rota.web.api import job_sweeps

JOBS = "/api/v1/jobs"


async def stored(site, task: str = "mail", payload: dict | None = None, **fields) -> UUID:
    job = a_job(task, payload or {"to": "ann"}, **fields)
    await site.store.enqueue([job])
    return job.id


async def died(site, message: str = "no such address", **fields) -> UUID:
    job_id = await stored(site, **fields)
    [job] = [job for job in await claim(site.store, await a_session(site.store)) if job.id == job_id]
    now = await site.store.now()
    await site.store.settle([failed(job, ErrorClass.NON_RETRYABLE, message, now=now)])
    return job_id


async def test_a_list_is_read_page_by_page_and_misses_nothing(site):
    client = await site.client("viewer")
    ids = [str(await stored(site)) for _ in range(5)]
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        params = {"limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = (await client.get(JOBS, params=params)).json()
        seen += [job["id"] for job in page["items"]]
        cursor, pages = page["next"], pages + 1
        if pages == 1:
            await stored(site)  # what comes meanwhile is not met

    assert seen == ids[::-1]
    assert pages == 3


async def test_a_page_that_is_full_and_the_last_has_no_next(site):
    client = await site.client("viewer")
    for _ in range(2):
        await stored(site)

    assert (await client.get(JOBS, params={"limit": 2})).json()["next"] is None


@pytest.mark.req("W36")
async def test_a_cursor_means_nothing_to_another_tenant_or_for_another_list(site):
    for tenant in ("red", "blue"):
        for _ in range(3):
            await stored(site, tenant=tenant)
    red, blue = await site.client("viewer", "red"), await site.client("viewer", "blue")
    cursor = (await red.get(JOBS, params={"limit": 1})).json()["next"]

    assert len((await red.get(JOBS, params={"limit": 1, "cursor": cursor})).json()["items"]) == 1
    foreign = await blue.get(JOBS, params={"limit": 1, "cursor": cursor})
    assert (foreign.status_code, foreign.json()["type"]) == (422, "urn:rota:bad-cursor")
    for wrong in (
        {"cursor": cursor, "filter": "task:mail"},
        {"cursor": "x"},
        {"cursor": "AAAA"},
        {"cursor": ""},
        {"cursor": "W10"},
    ):
        assert (await red.get(JOBS, params=wrong)).status_code == 422


@pytest.mark.parametrize("limit", ["0", "201", "-1", "many", "1e2"])
async def test_a_page_has_at_most_two_hundred_rows(memory_site, limit):
    assert (await (await memory_site.client()).get(JOBS, params={"limit": limit})).status_code == 422


async def test_the_filter_is_that_of_the_command_line(site):
    client = await site.client("viewer")
    wanted = await stored(site, payload={"to": "ann", "user": {"id": 7}}, queue="slow", tags=("night",))
    await stored(site, "report", {"month": 1})
    dead = await died(site)

    async def found(text: str) -> list[str]:
        answer = await client.get(JOBS, params={"filter": text})
        return [job["id"] for job in answer.json()["items"]]

    for text in ("queue:slow", "tag:night", "args.user.id:7", "queue:slow created>1h task:mail"):
        assert await found(text) == [str(wanted)], text
    assert await found("state:dead") == [str(dead)]
    assert await found("state:dead queue:slow") == []
    wrong = await client.get(JOBS, params={"filter": "stat:dead"})
    assert (wrong.status_code, wrong.json()["type"]) == (422, "urn:rota:bad-filter")
    assert wrong.json()["word"] == "stat:dead"


@pytest.mark.req("W36")
async def test_a_tenant_sees_its_own_jobs_whatever_it_asks_for(site):
    mine = await stored(site, tenant="red")
    await stored(site, tenant="blue")
    await stored(site)
    red, everybody = await site.client("manager", "red"), await site.client("viewer")

    assert [job["id"] for job in (await red.get(JOBS)).json()["items"]] == [str(mine)]
    assert (await red.get(JOBS, params={"filter": "tenant:blue"})).json()["items"] == []
    assert len((await everybody.get(JOBS)).json()["items"]) == 3
    assert len((await everybody.get(JOBS, params={"filter": "tenant:blue"})).json()["items"]) == 1


async def test_a_job_is_found_by_either_id(site):
    client = await site.client("viewer")
    job_id = await stored(site, payload={"to": "ann", "copies": 2**70})
    texts = [str(job_id), public_id(job_id), public_id(job_id).lower().replace("-", "")]
    answers = [await client.get(f"{JOBS}/{text}") for text in texts]

    assert {answer.json()["id"] for answer in answers} == {str(job_id)}
    assert answers[0].json()["public_id"] == public_id(job_id)
    assert str(2**70) in answers[0].text
    assert (await client.get(answers[0].json()["url"])).json() == answers[0].json()


async def test_what_is_sensitive_is_hidden_from_everybody(site):
    job_id = await died(
        site, "login failed: password=hunter2", payload={"to": "ann", "api_token": "sk_live_abcdefghijklmnop"}
    )
    for role in ("viewer", "operator", "manager"):
        client = await site.client(role)
        texts = [(await client.get(f"{JOBS}/{job_id}{part}")).text for part in ("", "/attempts", "/explain")]
        texts.append((await client.get(JOBS)).text)

        assert "ann" in texts[0]
        assert not any("hunter2" in text or "sk_live" in text for text in texts)


async def test_a_job_that_is_gone_is_404_and_an_archived_one_says_so(site, clock):
    client = await site.client("viewer")
    job_id = await stored(site, tenant="red")
    [job] = await claim(site.store, await a_session(site.store))
    await site.store.settle([completed(job)])
    unknown = await client.get(f"{JOBS}/{new_id()}")
    clock.advance(40 * 86_400)
    await site.store.tidy(Retention())
    archived = await client.get(f"{JOBS}/{job_id}")
    foreign = await (await site.client("viewer", "blue")).get(f"{JOBS}/{job_id}")

    assert (unknown.status_code, unknown.json()["type"]) == (404, "urn:rota:job-not-found")
    assert (archived.status_code, archived.json()["type"]) == (404, "urn:rota:job-archived")
    assert archived.json()["archived"]["state"] == "completed"
    assert (foreign.status_code, foreign.json()["type"]) == (404, "urn:rota:job-not-found")
    assert foreign.json()["detail"] == unknown.json()["detail"]


async def test_attempts_and_logs_tell_what_happened(site):
    client = await site.client("viewer")
    job_id = await died(site)
    [attempt] = (await client.get(f"{JOBS}/{job_id}/attempts")).json()
    line = kept_line(await site.store.now(), 30, "the address bounced")
    await site.store.keep_logs([LogTail(job_id, attempt["version"], 1, (line,), 1)])
    [log] = (await client.get(f"{JOBS}/{job_id}/logs")).json()

    assert (attempt["attempt"], attempt["error_class"]) == (1, "non_retryable")
    assert attempt["message"] == "no such address"
    assert [(line["level"], line["message"]) for line in log["lines"]] == [("WARNING", "the address bounced")]


async def test_a_job_knows_its_family_as_far_as_it_is_ones_own(site):
    top = await stored(site, tenant="blue")
    middle = await stored(site, tenant="red", parent_id=top)
    low = await stored(site, tenant="red", parent_id=middle)
    await stored(site, tenant="blue", parent_id=middle)
    everybody, red = await site.client("viewer"), await site.client("viewer", "red")

    whole = (await everybody.get(f"{JOBS}/{middle}/tree")).json()
    own = (await red.get(f"{JOBS}/{middle}/tree")).json()

    assert [job["id"] for job in whole["ancestors"]] == [str(top)]
    assert len(whole["children"]) == 2
    assert own["ancestors"] == []
    assert [job["id"] for job in own["children"]] == [str(low)]


async def test_why_a_job_waits_is_told_in_a_word_and_a_sentence(site):
    job_id = await stored(site)
    answer = (await (await site.client("viewer")).get(f"{JOBS}/{job_id}/explain")).json()

    assert answer["cause"] == "no_worker"
    assert answer["why"] == "No worker is alive."


async def test_the_verbs_do_what_they_say(site):
    client = await site.client("manager")
    job_id = await stored(site)

    async def did(verb: str, **body) -> tuple[str, str]:
        answer = (await client.post(f"{JOBS}/{job_id}/{verb}", json=body)).json()
        return answer["before"], answer["after"]

    assert await did("hold") == ("pending", "held")
    assert await did("release") == ("held", "pending")
    assert await did("cancel", reason="not needed") == ("pending", "cancelled")
    assert await did("retry") == ("cancelled", "pending")
    await claim(site.store, await a_session(site.store))
    assert await did("cancel") == ("running", "cancelling")
    assert await did("fail", retry=False) == ("running", "dead")
    assert await did("delete") == ("dead", "deleted")
    assert (await client.get(f"{JOBS}/{job_id}")).status_code == 404


async def test_what_the_state_does_not_allow_is_a_conflict_with_a_hint(site):
    client = await site.client("operator")
    job_id = await stored(site)
    answer = await client.post(f"{JOBS}/{job_id}/release")

    assert (answer.status_code, answer.json()["type"]) == (409, "urn:rota:move-refused")
    assert answer.json()["detail"].endswith("it is pending. Only a held job can be released.")


async def test_an_old_version_is_a_conflict_and_changes_nothing(site):
    client = await site.client("operator")
    job_id = await stored(site)
    version = (await client.get(f"{JOBS}/{job_id}")).json()["version"]
    await client.post(f"{JOBS}/{job_id}/hold", json={"version": version})
    answer = await client.post(f"{JOBS}/{job_id}/release", json={"version": version})

    assert (answer.status_code, answer.json()["type"]) == (409, "urn:rota:job-changed")
    assert (await client.get(f"{JOBS}/{job_id}")).json()["state"] == "held"


async def test_many_jobs_are_counted_first_and_then_changed_all_that_match_and_no_other(site):
    client = await site.client("operator", "red")
    for tenant in ("red", "red", "red", "blue"):
        await stored(site, tenant=tenant)
    await stored(site, "report", {"month": 1}, tenant="red")
    body = {"verb": "hold", "filter": "task:mail", "reason": "smtp is down"}

    counted = (await client.post(f"{JOBS}/actions", json=body)).json()
    assert (counted["matched"], counted["done"], counted["dry_run"]) == (3, 0, True)
    first = (await client.post(f"{JOBS}/actions", json=body | {"dry_run": False, "limit": 2})).json()
    assert (first["matched"], first["done"], first["more"]) == (3, 2, True)
    rest = (await client.post(f"{JOBS}/actions", json=body | {"dry_run": False})).json()
    assert (rest["matched"], rest["done"], rest["more"]) == (1, 1, False)
    held = (await (await site.client("viewer")).get(JOBS, params={"filter": "state:held"})).json()["items"]
    assert {(job["tenant"], job["task"], job["reason"]) for job in held} == {("red", "mail", "smtp is down")}
    assert len(held) == 3


async def test_many_ended_jobs_are_deleted_by_a_manager_only(site):
    await died(site)
    body = {"filter": "state:dead", "dry_run": False}

    refused = await (await site.client("operator")).post(f"{JOBS}/purge", json=body)
    done = await (await site.client("manager")).post(f"{JOBS}/purge", json=body)

    assert refused.status_code == 403
    assert done.json()["done"] == 1


async def test_a_verb_that_is_not_for_many_is_not_done_to_many(memory_site):
    body = {"verb": "kill", "filter": ""}

    assert (await (await memory_site.client()).post(f"{JOBS}/actions", json=body)).status_code == 422


async def test_a_manager_sees_what_is_hidden_and_is_seen_doing_so(site):
    job_id = await stored(site, payload={"to": "ann", "api_token": "sk_live_abcdefghijklmnop"}, tenant="red")
    answer = await (await site.client("manager", "red")).post(
        f"{JOBS}/{job_id}/reveal", json={"reason": "the customer asked"}
    )
    [row] = await site.store.audit(job_id)

    assert answer.json()["payload"]["api_token"] == "sk_live_abcdefghijklmnop"
    assert (row.action, row.reason, row.before, row.after) == ("reveal", "the customer asked", None, None)
    assert row.actor.startswith("manager of red (token ")
    assert (await (await site.client("operator", "red")).post(f"{JOBS}/{job_id}/reveal")).status_code == 403


async def test_a_waiting_job_is_edited_and_an_argument_that_does_not_fit_is_not(site):
    await site.store.publish([task.spec() for task in site.app.tasks.values()])
    client = await site.client("operator", "red")
    job_id = await stored(site, tenant="red")
    body = {"args": {"copies": 3}, "priority": 5, "run_at": "2030-01-01T00:00:00+01:00", "reason": "typo"}
    done = (await client.patch(f"{JOBS}/{job_id}", json=body)).json()
    wrong = await client.patch(f"{JOBS}/{job_id}", json={"args": {"copies": "many"}})
    naive = await client.patch(f"{JOBS}/{job_id}", json={"run_at": "2030-01-01T00:00:00"})

    assert (done["payload"], done["priority"]) == ({"to": "ann", "copies": 3}, 5)
    assert done["run_at"] == "2029-12-31T23:00:00Z"
    assert (wrong.status_code, naive.status_code) == (422, 422)


async def test_the_most_urgent_are_read_page_by_page_also_when_the_last_of_a_page_is_gone(site):
    client = await site.client("manager", "red")
    ids = [str(await stored(site, priority=priority, tenant="red")) for priority in (7, 1, 5, 3)]
    theirs = await stored(site, priority=4, tenant="blue")
    params = {"filter": "order:priority", "limit": 2}
    first = (await client.get(JOBS, params=params)).json()
    for verb in ("cancel", "delete"):
        assert (await client.post(f"{JOBS}/{ids[3]}/{verb}")).status_code == 200
    rest = (await client.get(JOBS, params=params | {"cursor": first["next"]})).json()

    assert [job["id"] for job in first["items"]] == [ids[1], ids[3]]
    assert [job["id"] for job in rest["items"]] == [ids[2], ids[0]]
    assert rest["next"] is None
    # A cursor made by hand tells nothing of a job of somebody else: it is a place, and nobody is looked up.
    stamp, _ = json.loads(urlsafe_b64decode(first["next"] + "=="))
    answers = []
    for job_id in (theirs, new_id()):
        cursor = urlsafe_b64encode(json.dumps([stamp, f"6 {job_id}"]).encode()).decode()
        answers.append((await client.get(JOBS, params=params | {"cursor": cursor})).json()["items"])
    assert [[job["id"] for job in items] for items in answers] == [[ids[0]], [ids[0]]]
    for position in (str(theirs), f"x {theirs}", f"6 {theirs} 1", "6", f"99999999999 {theirs}"):
        cursor = urlsafe_b64encode(json.dumps([stamp, position]).encode()).decode()
        bad = await client.get(JOBS, params=params | {"cursor": cursor})
        assert (bad.status_code, bad.json()["type"]) == (422, "urn:rota:bad-cursor"), position


async def test_many_jobs_are_all_met_though_the_newest_are_refused_again_and_again(site):
    client = await site.client("operator")
    old = await died(site)
    closed = [await died(site) for _ in range(3)]
    for job_id in closed:
        await client.post(f"/api/v1/dead-letters/{job_id}/discard")
    body = {"verb": "retry", "filter": "state:dead", "dry_run": False, "limit": 2}
    calls, before = [], None
    while not calls or before is not None:
        done = (await client.post(f"{JOBS}/actions", json=body | {"before": before})).json()
        calls.append((done["done"], done["refused"], done["more"]))
        before = done["next"]

    assert calls == [(0, 2, True), (1, 1, False)]
    assert (await client.get(f"{JOBS}/{old}")).json()["state"] == "pending"


async def test_a_call_that_takes_long_answers_what_was_done_and_where_to_go_on(site, monkeypatch):
    monkeypatch.setattr(job_sweeps, "SECONDS", 0.0)
    client = await site.client("operator")
    ids = [await stored(site) for _ in range(15)]
    body = {"verb": "hold", "filter": "task:mail", "dry_run": False}
    first = (await client.post(f"{JOBS}/actions", json=body)).json()
    rest = (await client.post(f"{JOBS}/actions", json=body | {"before": first["next"]})).json()

    assert (first["done"], first["more"], first["next"]) == (10, True, str(ids[5]))
    assert (rest["done"], rest["more"], rest["next"]) == (5, False, None)


async def test_a_list_leaves_out_what_is_large_and_the_job_itself_has_it(site):
    client = await site.client("viewer")
    large = str(await died(site, payload={"to": "x " * 2_500}))
    small = str(await stored(site))
    session = await a_session(site.store)
    [job] = await claim(site.store, session)
    worker = (await client.get(f"/api/v1/workers/{session}")).json()

    listed = {job["id"]: job for job in (await client.get(JOBS)).json()["items"]}
    [letter] = (await client.get("/api/v1/dead-letters")).json()["items"]
    for seen in (listed[large], letter["job"]):
        assert (seen["payload"], seen["payload_bytes"]) == (None, len('{"to": ""}') + 5_000)
    assert (listed[small]["payload"], listed[small]["payload_bytes"]) == ({"to": "ann"}, None)
    assert [held["payload"] for held in worker["running"]] == [{"to": "ann"}]
    whole = (await client.get(f"{JOBS}/{large}")).json()
    assert (whole["payload"], whole["payload_bytes"]) == ({"to": "x " * 2_500}, None)
    await site.store.settle([completed(job, "y " * 2_500)])
    [done] = (await client.get(JOBS, params={"filter": "state:completed"})).json()["items"]
    assert (done["result"], done["result_bytes"]) == (None, 5_002)
    assert (await client.get(f"{JOBS}/{small}")).json()["result"] == "y " * 2_500
