"""What commands show of payloads: without secrets, unless they are asked for; and the app's rules hold here too."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from rota.cli.locate import load_app

CORRELATION = "550e8400-e29b-41d4-a716-446655440000"
STRICT = """
from rota import Rota

app = Rota(rules="strict")


@app.task(category="ingestion")
def fetch(connection_id: int, token: str = "") -> None: ...
"""


@pytest.mark.req("W5")
def test_show_and_list_hide_secrets_unless_told_to_reveal_them(rota, jobs):
    job_id = jobs.add(payload={"to": "ann", "password": "hunter2"})

    shown, listed = rota("jobs", "show", job_id), rota("jobs", "list", "--json")
    assert '{"to":"ann","password":"***"}' in shown.out
    assert shown.err == "What looks like a secret or content is hidden (***); --reveal shows it.\n"
    assert json.loads(listed.out)[0]["payload"] == {"to": "ann", "password": "***"}
    assert json.loads(rota("jobs", "show", job_id, "--json").out)["payload"]["password"] == "***"

    for said in (
        rota("jobs", "show", job_id, "--reveal"),
        rota("jobs", "list", "--json", "--reveal"),
        rota("jobs", "show", job_id, "--json", "--reveal"),
    ):
        assert "hunter2" in said.out
        assert said.err == ""
    assert jobs.get(job_id).payload["password"] == "hunter2"


def test_what_people_say_is_shown_without_the_secrets_in_it(rota, jobs, tmp_path):
    (tmp_path / "polling_shop.py").write_text(
        "from rota import Rota, every\n\napp = Rota()\n\n"
        "@app.schedule(every('1h'))\n@app.task\ndef poll() -> None: ...\n"
    )
    assert rota("deploy", "publish", "polling_shop.py").code == 0
    dead = jobs.add("poll")
    rota("jobs", "kill", dead, "--yes", "--reason", "password=hunter2")
    rota("dlq", "ack", "--task", "poll", "--yes", "--reason", "he said password=hunter2")
    rota("schedules", "pause", "poll", "--reason", "new password=hunter2")

    commands = [
        ("dlq", "show", dead), ("dlq", "list", "--review", "acknowledged"), ("schedules", "show", "poll"),
        ("operations", "list"), ("audit", "list"), ("jobs", "show", dead), ("jobs", "why", dead),
    ]  # fmt: skip
    said = [rota(*command, *form) for command in commands for form in ((), ("--json",))]
    assert [answer.code for answer in said] == [0] * len(said)
    assert [answer.out for answer in said if "hunter2" in answer.out] == []
    assert sum("password=***" in answer.out for answer in said) >= 9


def test_a_payload_without_secrets_is_shown_as_it_is_and_nothing_is_said(rota, jobs):
    said = rota("jobs", "show", jobs.add(payload={"to": "ann", "token_count": 3}))

    assert '{"to": "ann", "token_count": 3}' in said.out
    assert said.err == ""


@pytest.mark.req("W4")
@pytest.mark.parametrize("published", [False, True])
def test_the_rules_of_an_app_hold_for_rota_enqueue_with_its_code_and_without(rota, jobs, tmp_path, published):
    (tmp_path / "strict_app.py").write_text(STRICT)
    here = [] if published else ["--app", "strict_app.py"]
    if published:
        jobs.publish(*(task.spec() for task in load_app("strict_app.py").tasks.values()))
        (tmp_path / "strict_app.py").unlink()

    said = rota("enqueue", "fetch", "connection_id=1", *here)
    assert said.code == 2
    assert "fetch cannot be enqueued: tenant_id is missing; pass using(tenant=…)" in said.err
    carried = ["--tenant", "acme", "--key", "k-1", "--correlation", CORRELATION]
    said = rota("enqueue", "fetch", "connection_id=1", "token=hunter2", *carried, *here)
    assert said.code == 2
    assert "token looks like a secret" in said.err
    assert "hunter2" not in said.err
    assert rota("jobs", "list").code == 4

    said = rota("enqueue", "fetch", "connection_id=1", *carried, *here)
    job = jobs.get(UUID(said.out.split()[0]))
    assert (job.tenant, job.key, job.correlation_id, job.category) == (
        "acme",
        "k-1",
        CORRELATION,
        "ingestion",
    )


def test_a_tick_is_a_key_for_the_rules(rota, jobs, tmp_path):
    (tmp_path / "strict_app.py").write_text(STRICT)

    said = rota("enqueue", "fetch", "connection_id=1", "--tick", "day", "--app", "strict_app.py")

    assert said.code == 0, said.err
