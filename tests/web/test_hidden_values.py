"""What is hidden where jobs are shown is told by nothing else: not by an error, not by a search."""

from __future__ import annotations

import pytest

from build import a_job

JOBS = "/api/v1/jobs"
TOKEN = "sk_live_abcdefghijklmnop"


async def stored(site, payload: dict) -> str:
    job = a_job("mail", payload)
    await site.store.enqueue([job])
    return str(job.id)


async def test_an_edit_that_does_not_fit_tells_nothing_of_arguments_that_the_caller_may_not_see(memory_site):
    @memory_site.app.task(name="letter")
    def letter(to: str, api_token: int, note: int) -> None: ...

    await memory_site.store.publish([task.spec() for task in memory_site.app.tasks.values()])
    job = a_job("letter", {"to": "ann", "api_token": TOKEN, "note": 1})
    await memory_site.store.enqueue([job])
    client = await memory_site.client("operator")

    answer = await client.patch(f"{JOBS}/{job.id}", json={"args": {"to": "bob"}})
    assert answer.status_code == 422
    assert 'letter: api_token is "***", and must be integer.' in answer.json()["detail"]
    assert TOKEN not in answer.text


@pytest.mark.parametrize(
    "words",
    [
        f"args.api_token:{TOKEN}",
        "args.api_token:1234",
        "args.login.password:hunter2",
        "args.secrets.pin:1234",  # below a name that hides all that it holds
        "args.note:4111111111111111",  # by its looks
        "args.note:password=hunter2",
        "task:mail args.copies:1 args.ssn:7",
    ],
)
async def test_a_search_for_a_hidden_value_is_refused_and_so_is_no_way_to_guess_it(memory_site, words):
    await stored(memory_site, {"to": "ann", "api_token": "1234", "login": {"password": "hunter2"}})
    for role in ("viewer", "operator"):
        client = await memory_site.client(role)
        listed = await client.get(JOBS, params={"filter": words})
        counted = await client.post(f"{JOBS}/actions", json={"verb": "hold", "filter": words})

        assert listed.status_code == 422
        assert listed.json()["type"] == "urn:rota:bad-filter"
        assert "hidden where jobs are shown" in listed.json()["detail"]
        assert counted.status_code == (403 if role == "viewer" else 422)
    assert (
        await (await memory_site.client("manager")).get(JOBS, params={"filter": words})
    ).status_code == 200


async def test_what_everybody_sees_everybody_may_look_for(memory_site):
    job_id = await stored(memory_site, {"to": "ann", "copies": 2, "body": "short", "token_count": 7})
    client = await memory_site.client("viewer")
    for words in ("args.to:ann", "args.copies:2", "args.body:short", "args.token_count:7"):
        items = (await client.get(JOBS, params={"filter": words})).json()["items"]
        assert [job["id"] for job in items] == [job_id], words
