"""`rota deploy` with two real versions of an app, on a database that the old one left full of work."""

from __future__ import annotations

import json
import subprocess
import sys

import psycopg
import pytest

from rota.cli import exits

OLD = """
from rota import Rota, every

app = Rota(code_version="v1")


@app.task(queue="mail")
def send(to: str) -> None: ...


@app.task
def fax(number: str) -> None: ...


@app.task
def sweep() -> None: ...


app.schedule("0 2 * * *", name="nightly")(sweep)
app.schedule("0 5 * * *", name="morning")(sweep)
"""

READY = OLD.replace("v1", "v2").replace("def send(to: str)", "def send(to: str, html: bool = False)")

NEW = """
from rota import Rota, every

app = Rota(code_version="v2")


@app.task(queue="post")
def send(recipient: str, to: int = 0) -> None: ...


@app.task
def sweep() -> None: ...


app.schedule("0 3 * * *", name="nightly")(sweep)
app.schedule(every("5m"), name="often")(sweep)
"""

FULL = """
import old
for number in range(30):
    old.send.enqueue_sync(f"user{number}@example.com")
old.fax.using(delay="1h").enqueue_sync("+49 30 1234")
old.app.close_sync()
"""


@pytest.fixture
def versions(tmp_path):
    for name, text in (("old", OLD), ("ready", READY), ("new", NEW)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


@pytest.fixture
def in_use(rota, jobs, versions):
    """The old version is deployed, and its work waits."""
    assert rota("deploy", "old.py").code == exits.DONE
    subprocess.run([sys.executable, "-c", FULL], check=True, cwd=versions)
    return jobs


def found(said) -> dict[tuple[str, str], dict]:
    return {(line["kind"], line["subject"]): line for line in json.loads(said.out)}


def test_deploy_makes_tasks_and_schedules_known_without_a_worker(rota, jobs, versions):
    said = rota("deploy", "old.py", "--json")

    assert said.code == exits.DONE
    assert json.loads(said.out) == {
        "tasks": ["send", "fax", "sweep"], "schedules": ["nightly", "morning"], "code_version": "v1",
    }  # fmt: skip
    assert {spec.name: spec.code_version for spec in jobs.do(lambda store: store.tasks())} == {
        "send": "v1", "fax": "v1", "sweep": "v1",
    }  # fmt: skip
    assert jobs.do(lambda store: store.sessions()) == []
    assert (
        rota("enqueue", "send", "to=ann@example.com").code == exits.DONE
    )  # no code is needed for it any more


def test_the_same_code_again_is_ready(rota, in_use):
    said = rota("deploy", "check", "old.py", "--strict")

    assert said.code == exits.DONE
    assert "Ready to deploy." in said.err


def test_code_that_reads_both_forms_is_ready(rota, in_use):
    said = rota("deploy", "check", "ready.py", "--json")

    assert said.code == exits.DONE
    assert found(said)["payload", "payloads"]["what"] == "21 waiting payloads tried; this code reads them"


def test_code_that_would_break_what_waits_is_refused_with_each_reason(rota, in_use):
    said = rota("deploy", "check", "new.py", "--json")

    assert said.code == exits.PROBLEMS
    lines = found(said)
    levels = {subject: line["level"] for subject, line in lines.items()}
    assert levels == {
        ("task", "fax"): "bad",
        ("payload", "send"): "bad",
        ("task", "send"): "warn",
        ("schedule", "morning"): "warn",
        ("schedule", "nightly"): "warn",
        ("schedule", "often"): "ok",
        ("migration", "schema"): "ok",
    }
    assert "1 job of it waits" in lines["task", "fax"]["what"]
    assert lines["payload", "send"]["what"].startswith("cannot read 20 of 20 waiting payloads of version 1.0")
    assert "(30 wait)" in lines["payload", "send"]["what"]
    assert "recipient" in lines["payload", "send"]["what"]
    assert "from 0 2 * * * to 0 3 * * *" in lines["schedule", "nightly"]["what"]


def test_a_deploy_is_told_in_the_audit_with_who_and_what_was_before(rota, jobs, versions):
    rota("deploy", "old.py")
    rota("deploy", "new.py")

    new, old = json.loads(rota("audit", "list", "--action", "deploy", "--json").out)
    assert (old["actor"], old["before"]) == ("ann@office", None)
    assert (new["before"], new["after"].partition(" (")[0]) == ("v1", "v2")
    assert old["after"] == "v1 (3 tasks, 2 schedules)"


def test_a_check_changes_nothing(rota, in_use):
    before = in_use.do(lambda store: store.tasks())
    rota("deploy", "check", "new.py")

    assert in_use.do(lambda store: store.tasks()) == before
    assert {record.spec.name for record in in_use.do(lambda store: store.roster()).schedules} == {
        "nightly",
        "morning",
    }


def test_warnings_fail_only_a_strict_check(rota, jobs, versions):
    rota("deploy", "old.py")

    assert rota("deploy", "check", "new.py").code == exits.DONE
    assert rota("deploy", "check", "new.py", "--strict").code == exits.PROBLEMS


def test_people_see_only_what_is_not_well(rota, in_use):
    lines = rota("deploy", "check", "new.py").lines

    assert len(lines) == 5
    assert not any(line.startswith("ok") for line in lines)


def test_a_database_without_the_schema_is_a_problem_and_the_rest_is_unknown(
    rota, bare, monkeypatch, versions
):
    monkeypatch.setenv("ROTA_URL", bare)
    said = rota("deploy", "check", "old.py", "--json")

    assert said.code == exits.PROBLEMS
    lines = found(said)
    assert ("migration", "0001_engine") in lines
    assert lines["task", "waiting jobs"]["what"].startswith("unknown: ")


def test_a_store_that_cannot_be_reached_is_exit_code_3(rota, monkeypatch, versions):
    monkeypatch.setenv("ROTA_URL", "postgresql://nobody@127.0.0.1:9/none")

    assert rota("deploy", "check", "old.py").code == exits.UNREACHABLE


def test_an_app_that_is_not_there_is_exit_code_2(rota, jobs):
    assert rota("deploy", "nowhere.py").code == exits.USAGE


def test_an_operators_word_on_a_schedule_outlives_the_deploy(rota, in_use):
    assert rota("schedules", "edit", "nightly", "--cron", "0 4 * * *").code == exits.DONE
    line = found(rota("deploy", "check", "new.py", "--json"))["schedule", "nightly"]
    assert "an operator set its timing, which stays" in line["what"]

    rota("deploy", "new.py")
    [record] = [r for r in in_use.do(lambda store: store.roster()).schedules if r.spec.name == "nightly"]
    assert (record.spec.timing, record.edits.timing) == ("0 3 * * *", "0 4 * * *")


def test_reading_the_whole_backlog_leaves_the_history_alone(jobs):
    from rota.stores.postgres.sqlfiles import statement

    with psycopg.connect(jobs.url) as connection:
        for verb in ("waiting", "waiting_payloads"):
            given = {"tasks": ["send"], "versions": ["1.0"], "sample": 3}
            plan = connection.execute("EXPLAIN " + statement(verb), given).fetchall()
            assert "finished_jobs" not in str(plan)
