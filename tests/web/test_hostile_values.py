"""Values that nobody means well: whatever is sent, the answer says what is wrong, and nothing breaks here."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from build import a_job

JOBS = "/api/v1/jobs"
HUGE = 10**400
TIMES = [
    "9999-12-31T23:59:59-14:00",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00",
    "2030-01-01T00:00:00Z",
]


def options() -> list[dict[str, object]]:
    lengths = [1e308, 1e18, 1e12, -1, 0, "1e308", "99999999999999999d", "", "-5m"]
    found: list[dict[str, object]] = [
        {name: length} for name in ("delay", "deadline", "timeout", "key_window") for length in lengths
    ]
    found += [{"at": time} for time in TIMES]
    found += [{"unique": {"key": "u", "until": length}} for length in lengths]
    found += [{name: "é" * 600} for name in ("queue", "subject", "serial", "key", "external_id", "category")]
    found += [{"max_attempts": HUGE}, {"priority": HUGE}, {"parent": "x" * 500}, {"tags": ["a"] * 51}]
    return found


async def test_no_option_breaks_anything(site):
    client = await site.client("operator")
    for said in options():
        answer = await client.post(JOBS, json={"task": "mail", "args": {"to": "ann"}, "options": said})
        assert answer.status_code in (201, 422), (said, answer.text)
        assert (await client.get(JOBS, params={"limit": 1})).status_code == 200, said


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "ann", "copies": HUGE},
        {"to": "ann", "copies": -HUGE},
        {"to": "ann", "copies": 1e308},
        {"to": "\u202e\u2066<script>alert(1)</script>"},
        {"to": "x" * 300_000},
        {"__proto__": {"to": "ann"}},
        {"to": "ann", "self": 1},
        {"to": "ann", "": 1},
        {f"key{number}": 1 for number in range(20_000)},
    ],
    ids=lambda arguments: str(arguments)[:30],
)
async def test_no_argument_breaks_anything(site, arguments):
    client = await site.client("operator")
    answer = await client.post(JOBS, json={"task": "mail", "args": arguments})
    listed = await client.get(JOBS)

    assert answer.status_code in (201, 422), answer.text[:300]
    assert listed.status_code == 200


async def test_no_edit_breaks_anything(site):
    client = await site.client("operator")
    job = a_job("mail", {"to": "ann"})
    await site.store.enqueue([job])
    await site.store.publish([task.spec() for task in site.app.tasks.values()])
    edits = [{"run_at": time} for time in TIMES]
    edits += [{"version": HUGE, "priority": 1}, {"queue": "é" * 600}, {"args": {"to": "x" * 300_000}}]
    edits += [{"reason": "x" * 3000, "priority": 1}, {"args": {}}, {"priority": True}]
    for edit in edits:
        answer = await client.patch(f"{JOBS}/{job.id}", json=edit)
        assert answer.status_code in (200, 409, 422), (edit, answer.text)
        assert (await client.get(JOBS)).status_code == 200, edit
    assert (await client.get(f"{JOBS}/{job.id}")).status_code == 200


def a_cursor(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


async def test_no_cursor_filter_or_path_breaks_anything(site):
    client = await site.client("viewer")
    for _ in range(2):
        await site.store.enqueue([a_job("mail", {"to": "ann"})])
    real = (await client.get(JOBS, params={"limit": 1})).json()["next"]
    stamp = json.loads(urlsafe_b64decode(real + "=="))[0]
    cursors = [a_cursor([stamp, "not an id"]), a_cursor([stamp, 7]), a_cursor({}), a_cursor(None)]
    cursors += [urlsafe_b64encode(b"[" * 1400).decode(), "é", "=" * 100, "\ud7ff"]
    for cursor in cursors:
        answer = await client.get(JOBS, params={"limit": 1, "cursor": cursor})
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:rota:bad-cursor"), cursor
    for text in ("args.a:'; DROP TABLE rota.jobs; --", 'task:"', "created>99999999d", "priority>" + "9" * 400,
                 "args." + "a." * 400 + "b:1", "state:", ":", "tag:%",
                 "args.a:1e999999", "args.a:-1e-999999", "args.a:" + "9" * 1500,
                 "error:(((", "created:..", "id:x"):  # fmt: skip
        answer = await client.get(JOBS, params={"filter": text})
        assert answer.status_code in (200, 422), (text, answer.text)
    for path in ("/%2e%2e/%2e%2e/etc/passwd", "//", "/a/b", "/%ff", "/" + "a" * 4000):
        assert (await client.get(JOBS + path)).status_code in (404, 422), path


@pytest.mark.parametrize("said", ["no", "false", 0, 0.0, [], {}])
async def test_a_value_of_another_kind_is_refused_and_not_guessed_at(memory_site, said):
    client = await memory_site.client("manager")
    job = a_job("mail", {"to": "ann"})
    await memory_site.store.enqueue([job])

    answer = await client.post(f"{JOBS}/purge", json={"filter": "", "dry_run": said})
    operated = await client.post(
        f"{JOBS}/operations", json={"verb": "cancel", "filter": "", "expected": 1, "dry_run": said}
    )

    assert (answer.status_code, operated.status_code) == (422, 422)
    assert [found.state.value for found in await memory_site.store.get([job.id])] == ["pending"]


@pytest.mark.parametrize("moment", [1_900_000_000, True, 1.5e9])
async def test_a_moment_is_text_and_no_number(memory_site, moment):
    client = await memory_site.client("operator")
    body = {"task": "mail", "args": {"to": "ann"}, "options": {"at": moment}}

    answer = await client.post(JOBS, json=body)

    assert answer.status_code == 422
    assert "write a moment as text" in answer.text
