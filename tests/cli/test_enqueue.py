"""`rota enqueue`: checked before it is stored, with the app's signature or with what workers published."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime

import pytest

from build import a_session, claim, completed, failed
from rota._core.failure import ErrorClass
from rota._core.job import State
from rota._core.job_filter import JobFilter
from rota._core.retry import Retry
from rota._core.rules import KeyRule, TaskRules
from rota._core.task_spec import TaskSpec
from rota.cli import exits
from rota.cli.locate import load_app

GREET = TaskSpec(
    "greet",
    queue="mail",
    priority=50,
    retry=Retry(attempts=2),
    timeout=9.0,
    schema_json=json.dumps(
        {
            "properties": {"name": {"type": "string"}, "times": {"type": "integer"}},
            "required": ["name"],
            "additionalProperties": False,
        }
    ),
)


def stored(jobs, said):
    return jobs.get(said.out.split("\t")[0])


@pytest.mark.req("D24")
def test_a_job_is_enqueued_with_the_apps_signature_and_who_created_it(rota, jobs, app):
    said = rota("enqueue", "greet", "name=Ann", "times=2")

    job = jobs.do(lambda store: store.get([_id(said)]))[0]
    assert said.code == 0
    assert said.out == f"{job.id}\tcreated\n"
    assert said.err == f"Enqueued greet as {job.id} in queue 'default', due now.\n"
    assert (job.task, job.payload, job.created_by) == ("greet", {"name": "Ann", "times": 2}, "cli:ann@office")


def _id(said):
    from uuid import UUID

    return UUID(said.out.split("\t")[0].strip())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["greet"], "argument 'name' is missing"),
        (["greet", "nme=Ann"], "it has no argument 'nme' (did you mean 'name'?)"),
        (["greet", "name=Ann", "times=two"], "argument 'times'"),
        (["gret", "name=Ann"], "no task named 'gret' is registered here (4 are); did you mean 'greet'?"),
        (["greet", "name"], "'name' is not an argument. Write name=value"),
        (
            ["greet", "--json", "missing.json"],
            "the payload 'missing.json' cannot be read: No such file or directory.",
        ),
        (["greet", "name=Ann", "--key", "k" * 2000], "key has 2000 bytes; at most 1000 are allowed."),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_stored(rota, jobs, app, arguments, words):
    said = rota("enqueue", *arguments)

    assert (said.code, said.out) == (2, "")
    assert words in said.err
    assert rota("jobs", "list").code == 4


def test_without_the_app_the_published_task_decides(rota, jobs):
    jobs.publish(GREET)

    said = rota("enqueue", "greet", "name=Ann")

    job = jobs.get(_id(said))
    assert (job.queue, job.priority, job.max_attempts, job.timeout) == ("mail", 50, 2, 9.0)
    assert job.payload == {"name": "Ann"}


def test_a_published_task_refuses_what_does_not_fit_its_schema(rota, jobs):
    jobs.publish(GREET)

    missing, unknown = rota("enqueue", "greet"), rota("enqueue", "gret", "name=Ann")

    assert (missing.code, unknown.code) == (2, 2)
    assert missing.err == "rota: greet needs the argument 'name'. It takes: name, [times].\n"
    assert "no task named 'gret' is registered here (1 are); did you mean 'greet'?" in unknown.err
    assert (
        "`rota tasks list` shows all; a worker or `rota deploy` makes those of its code known" in unknown.err
    )


def test_a_published_serial_task_gets_the_same_gate_as_from_its_code(rota, jobs, tmp_path):
    (tmp_path / "serial_app.py").write_text(
        "from rota import Rota\napp = Rota()\n\n@app.task(serial='site')\ndef crawl(site: int) -> None: ...\n"
    )
    with_code = jobs.get(
        _id(rota("enqueue", "crawl", "site=7", "--tenant", "acme", "--app", "serial_app.py"))
    )
    jobs.publish(TaskSpec("crawl", gate_path="site"))

    without = jobs.get(_id(rota("enqueue", "crawl", "site=7", "--tenant", "acme")))

    assert without.gate == with_code.gate
    assert without.gate is not None


def test_a_published_task_gives_its_keys_and_tags_as_from_its_code(rota, jobs, tmp_path):
    (tmp_path / "keyed_app.py").write_text(
        "from rota import Rota, Unique\napp = Rota()\n\n"
        "@app.task(key='order', unique=Unique('site', until='finished'), tags=['web'])\n"
        "def crawl(site: int = 7, order: str = 'a') -> None: ...\n"
    )
    [spec] = [task.spec() for task in load_app("keyed_app.py").tasks.values()]
    jobs.publish(spec)

    first = rota("enqueue", "crawl", "--app", "keyed_app.py")
    same = rota("enqueue", "crawl")
    other = rota("enqueue", "crawl", "site=8", "order=b")

    assert _id(same) == _id(first)
    job = jobs.get(_id(other))
    assert (job.key, job.unique_key, job.unique_scope, job.tags) == ("b", "8", "finished", ("web",))


def test_a_key_that_only_the_code_knows_is_not_left_out_without_it(rota, jobs):
    jobs.publish(TaskSpec("crawl", rules=TaskRules(unique=KeyRule(None))))

    refused = rota("enqueue", "crawl")

    assert refused.code == 1
    assert (
        "crawl finds its unique key by a function of its code, which is not here. Nothing was stored."
        in refused.err
    )


def test_the_options_say_when_where_and_for_whom(rota, jobs, app):
    later = rota(
        "enqueue", "greet", "name=A", "--in", "1h30m", "--queue", "slow", "--priority", 7, "--tenant", "acme"
    )
    at = rota("enqueue", "greet", "name=B", "--at", "2031-03-01T09:30+01:00")

    job = jobs.get(_id(later))
    assert (job.queue, job.priority, job.tenant) == ("slow", 7, "acme")
    assert (job.run_at - job.created_at).total_seconds() == pytest.approx(5400, abs=1)
    assert "due in 1h 30m" in later.err
    assert jobs.get(_id(at)).run_at == datetime(2031, 3, 1, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--in", "soon"], "duration 'soon' is not understood"),
        (["--at", "tomorrow"], "'tomorrow' is not a moment; write it like 2026-03-01T09:30"),
        (["--in", "5m", "--at", "2031-03-01"], "--in and --at were both given; a job becomes due once."),
        (["--priority", "-1"], "-1 is not in the range 0<=x<=32767"),
        (["--timeout", "5s"], "--timeout needs --wait."),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(rota, jobs, app, options, words):
    said = rota("enqueue", "greet", "name=Ann", *options)

    assert said.code == 2
    assert words in " ".join(said.err.split())


def test_a_second_job_with_the_key_is_the_first(rota, jobs, app):
    first = rota("enqueue", "greet", "name=Ann", "--key", "order-7")
    second = rota("enqueue", "greet", "name=Ann", "--key", "order-7")
    other = rota("enqueue", "greet", "name=Bob", "--key", "order-7")

    assert (second.code, second.out) == (0, f"{_id(first)}\tduplicate\n")
    assert second.err == f"A job with that key is there already: {_id(first)} (duplicate).\n"
    assert other.code == 1
    assert (
        f"the key 'order-7' belongs to job {_id(first)}, which was enqueued with other arguments."
        in other.err
    )


def test_the_payload_may_come_from_a_file_or_stdin_with_pairs_on_top(rota, jobs, app, tmp_path):
    (tmp_path / "payload.json").write_text('{"name": "File", "times": 2}')

    from_file = rota("enqueue", "greet", "--json", "payload.json", "times=3")
    from_stdin = rota("enqueue", "greet", "--json", "-", stdin='{"name": "Stdin"}')

    assert jobs.get(_id(from_file)).payload == {"name": "File", "times": 3}
    assert jobs.get(_id(from_stdin)).payload == {"name": "Stdin"}


def test_a_bare_json_at_the_end_is_the_form_of_the_answer(rota, jobs, app):
    bare = rota("enqueue", "greet", "name=Ann", "--json")
    both = rota("enqueue", "greet", "--json", "-", "--json", stdin='{"name": "Stdin"}')
    before = rota("--json", "enqueue", "greet", "name=Ann")

    for said in (bare, both, before):
        answer = json.loads(said.out)
        assert (answer["task"], answer["stored"]) == ("greet", "created")


@pytest.mark.parametrize("text", ["[1]", "{", '"x"'])
def test_a_payload_that_is_no_object_is_refused(rota, jobs, app, text):
    said = rota("enqueue", "greet", "--json", "-", stdin=text)

    assert said.code == 2
    assert "the payload is" in said.err


def test_a_broken_app_is_an_error_and_not_a_reason_to_check_less(rota, jobs, tmp_path):
    jobs.publish(GREET)
    (tmp_path / "jobs.py").write_text("from rota import Rota\napp = Rota()\n1 / 0\n")

    said = rota("enqueue", "greet", "name=Ann")

    assert said.code == 2
    assert "jobs.py could not be imported: ZeroDivisionError" in said.err


def test_a_payload_that_no_store_can_keep_is_refused_without_the_app_too(rota, jobs):
    jobs.publish(GREET)

    nul = rota("enqueue", "greet", 'name:="a\\u0000b"')
    large = rota("enqueue", "greet", f"name={'x' * 300_000}")

    assert (nul.code, large.code) == (2, 2)
    assert "greet cannot be enqueued: name contains a NUL character" in nul.err
    assert "the limit is 262,144" in large.err


class Clerk:
    """A worker's hands in another thread: ends the next job so, after a moment."""

    def __init__(self, jobs, end):
        self.jobs, self.end = jobs, end
        self.thread = threading.Thread(target=self.work)

    def work(self):
        async def settle(store):
            session = await a_session(store, lease=600)
            found = []
            while not found:
                found = await claim(store, session)
                time.sleep(0.02)
            await store.settle([self.end(found[0])])

        self.jobs.do(settle)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.thread.join()


def test_waiting_prints_the_result_and_nothing_else_on_stdout(rota, jobs, app):
    with Clerk(jobs, lambda job: completed(job, {"made": 3})):
        said = rota("enqueue", "greet", "name=Ann", "--wait")

    assert (said.code, json.loads(said.out)) == (0, {"made": 3})


def test_waiting_for_a_job_that_dies_is_exit_1_with_the_way_to_its_stack(rota, jobs, app):
    with Clerk(jobs, lambda job: failed(job, ErrorClass.NON_RETRYABLE, "no such address")):
        said = rota("enqueue", "greet", "name=Ann", "--wait")

    assert (said.code, said.out) == (1, "")
    assert "died (non_retryable): ValueError: no such address." in said.err
    assert "`rota jobs show " in said.err


def test_ctrl_c_while_waiting_says_that_the_job_stays(rota, jobs, app, monkeypatch):
    async def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rota.cli.waiting.ended", interrupted)
    said = rota("enqueue", "greet", "name=Ann", "--wait")

    [job] = jobs.do(lambda store: store.find(JobFilter()))
    assert said.code == exits.INTERRUPTED
    assert f"Stopped waiting. The job stays; `rota jobs cancel {job.id}` takes it back." in said.err


def test_waiting_no_longer_than_told_leaves_the_job_alone(rota, jobs, app):
    said = rota("enqueue", "greet", "name=Ann", "--wait", "--timeout", "0.3s")

    assert said.code == 1
    assert "did not finish within 0.3 s; it is pending and goes on. Is a worker running?" in said.err
    [job] = json.loads(rota("jobs", "list", "--json").out)
    assert job["state"] == State.PENDING


def test_waiting_for_what_nobody_can_run_says_so(rota, jobs, app, monkeypatch):
    monkeypatch.setattr("rota.cli.waiting.LONELY_AFTER", 0.2)

    said = rota("enqueue", "greet", "name=Ann", "--wait", "--timeout", "1s")

    assert "No worker that knows 'greet' is running; start one with `rota worker`." in said.err
