"""`rota jobs debug`: a stored job is run here, and stays as it is."""

from __future__ import annotations

import json
import sys
from uuid import UUID

import pexpect
import pytest

from build import completed

APP = """
from pathlib import Path

from rota import Cancel, Retry, Rota, Snooze, current_job

app = Rota()


@app.resource
async def greeting():
    yield "Hello"


@app.middleware
async def noting(job, call_next):
    Path("seen").write_text(job.task)
    return await call_next()


@app.task
async def greet(name: str) -> str:
    job = current_job()
    await follow_up.enqueue(name)
    await follow_up.enqueue_many([("a",), ("b",)])
    return f"{greeting()}, {name}! attempt {job.attempt}, key {job.effect_key}"


@app.task(queue="mail")
def follow_up(name: str) -> None: ...


@app.task(retry=Retry(attempts=2), timeout="1h")
def broken(number: int) -> None:
    doubled = number * 2
    raise ValueError(f"no order {doubled}")


@app.task
async def moody(mood: str) -> None:
    if mood == "snooze":
        raise Snooze("5m", "not ready")
    raise Cancel("not needed")


@app.task
async def booked(order: int) -> int:
    async with current_job().transaction() as connection:
        await connection.execute("CREATE TABLE shop_orders (id int)")
        await connection.execute("INSERT INTO shop_orders VALUES (%s)", [order])
        row = await (await connection.execute("SELECT count(*) FROM shop_orders")).fetchone()
    return row[0]


@app.task(executor="process")
def apart() -> str:
    return "here"
"""


@pytest.fixture(autouse=True)
def project(tmp_path):
    (tmp_path / "jobs.py").write_text(APP)


def test_a_job_is_run_with_its_stored_arguments_and_stays_as_it_is(rota, jobs, tmp_path):
    job_id = jobs.add("greet", payload={"name": "Ann"})
    before = rota("jobs", "show", str(job_id), "--json").out

    said = rota("jobs", "debug", str(job_id))

    assert said.code == 0
    assert f'"Hello, Ann! attempt 1, key {job_id}"' in said.out
    assert (
        f"Running greet for job {job_id} (pending) here, for real. The job itself stays as it is." in said.err
    )
    assert "It ended as completed." in said.err
    assert (tmp_path / "seen").read_text() == "greet"
    after = rota("jobs", "show", str(job_id), "--json").out
    assert json.loads(after) == json.loads(before)


def test_what_it_enqueues_is_listed_and_not_stored_unless_asked_for(rota, jobs):
    job_id = jobs.add("greet", payload={"name": "Ann"})

    said = rota("jobs", "debug", str(job_id))
    kept = rota("jobs", "list", "--task", "follow_up")
    stored = rota("jobs", "debug", str(job_id), "--enqueue")
    found = rota("jobs", "list", "--task", "follow_up", "--json")

    assert "It enqueued 3 jobs, not stored (--enqueue stores what it enqueues):" in said.err
    assert 'follow_up\tmail\t{"name":"Ann"}' in said.out
    assert "No job matches" in kept.err
    assert "It enqueued 3 jobs, stored:" in stored.err
    assert {child["parent_id"] for child in json.loads(found.out)} == {str(job_id)}


def test_a_failure_is_shown_with_its_stack_and_what_a_worker_would_do(rota, jobs):
    job_id = jobs.add("broken", payload={"number": 3}, max_attempts=2)

    said = rota("jobs", "debug", str(job_id))

    assert said.code == 1
    assert "ValueError: no order 6" in said.err
    assert 'jobs.py", line' in said.err
    assert "It failed (retryable): no order 6. In a worker it would be tried again after" in said.err
    assert "is tried again, attempt" not in said.err  # the worker's own words would not be true here


def test_a_dead_job_can_be_debugged_and_stays_dead(rota, jobs):
    job_id = jobs.dead("broken", payload={"number": 3}, max_attempts=1)

    said = rota("jobs", "debug", str(job_id))

    assert "In a worker the job would be dead now." in said.err
    assert json.loads(rota("jobs", "show", str(job_id), "--json").out)["state"] == "dead"


@pytest.mark.parametrize(
    ("mood", "words"),
    [("snooze", "It asked to be run later (not ready)."), ("cancel", "It ended as cancelled (not needed).")],
)
def test_other_ends_are_told_in_words(rota, jobs, mood, words):
    said = rota("jobs", "debug", str(jobs.add("moody", payload={"mood": mood})))

    assert (said.code, words in said.err) == (0, True)


def test_as_json_everything_is_one_value(rota, jobs):
    job_id = jobs.add("broken", payload={"number": 3})

    said = rota("jobs", "debug", str(job_id), "--json")

    told = json.loads(said.out)
    assert (said.code, told["id"], told["state"], told["would_become"]) == (
        1,
        str(job_id),
        "pending",
        "pending",
    )
    assert (told["error"]["class"], told["error"]["message"]) == ("retryable", "no order 6")
    assert told["enqueued"] == []


def test_a_deadline_that_has_passed_and_a_cancel_that_was_asked_for_do_not_keep_it_from_running(rota, jobs):
    job_id = jobs.add("greet", payload={"name": "Ann"}, deadline_in=0.0)

    assert "It ended as completed." in rota("jobs", "debug", str(job_id)).err


def test_a_task_of_a_child_process_runs_here(rota, jobs):
    assert '"here"' in rota("jobs", "debug", str(jobs.add("apart"))).out


def test_what_was_or_is_being_done_is_done_again_only_when_asked_for(rota, jobs):
    running = jobs.run("greet", payload={"name": "Bob"})
    busy = rota("jobs", "debug", str(running.id))
    jobs.do(lambda store: store.settle([completed(running)]))
    refused = rota("jobs", "debug", str(running.id))
    asked = rota("jobs", "debug", str(running.id), "--yes")

    assert (busy.code, refused.code, asked.code) == (2, 2, 0)
    assert "A worker runs this job at this moment; what it does would be done twice." in busy.err
    assert "This job has completed; what it did would be done a second time." in refused.err
    assert "add --yes" in refused.err
    assert jobs.get(running.id).state == "completed"


def test_a_job_or_a_task_that_is_not_there_is_said_to_be_so(rota, jobs):
    nobody = rota("jobs", "debug", str(UUID(int=1)))
    unknown = rota("jobs", "debug", str(jobs.add("greeet")))

    assert (nobody.code, unknown.code) == (4, 2)
    assert "no job has the id" in nobody.err
    assert "did you mean 'greet'?" in unknown.err


def pdb(job_id: UUID) -> pexpect.spawn:
    command = ["-m", "rota.cli", "jobs", "debug", str(job_id), "--pdb"]
    terminal = pexpect.spawn(sys.executable, command, encoding="utf-8", timeout=30)
    terminal.expect_exact("(Pdb) ")
    return terminal


def test_pdb_stops_at_the_first_line_and_where_the_exception_was_raised(jobs):
    with pdb(jobs.add("broken", payload={"number": 3})) as terminal:
        assert "-> doubled = number * 2" in terminal.before
        terminal.sendline("c")
        terminal.expect_exact("ValueError: no order 6")
        terminal.expect_exact("(Pdb) ")
        terminal.sendline("p 'doubled is', doubled")
        terminal.expect_exact("('doubled is', 6)")
        terminal.sendline("q")
        terminal.expect_exact("It failed (retryable): no order 6.")
        terminal.expect(pexpect.EOF)


def test_pdb_steps_through_a_coroutine(jobs):
    with pdb(jobs.add("greet", payload={"name": "Ann"})) as terminal:
        assert "-> job = current_job()" in terminal.before
        for line in ("await follow_up.enqueue(name)", "await follow_up.enqueue_many", "return f"):
            terminal.sendline("n")
            terminal.expect_exact(line)
        terminal.sendline("c")
        terminal.expect_exact("It ended as completed.")
        terminal.expect(pexpect.EOF)


def test_leaving_the_debugger_leaves_everything_as_it_was(jobs):
    job_id = jobs.add("greet", payload={"name": "Ann"})
    with pdb(job_id) as terminal:
        terminal.sendline("q")
        terminal.expect_exact("Left the debugger. The job is as it was.")
        terminal.expect(pexpect.EOF)

    assert jobs.get(job_id).version == 1


def test_what_it_writes_in_its_own_transaction_is_undone(rota, jobs):
    job_id = jobs.add("booked", payload={"order": 7})

    for _ in range(2):  # the first time left no table behind
        told = json.loads(rota("jobs", "debug", str(job_id), "--json").out)

        assert (told["result"], told["transaction_undone"]) == (1, True)
    assert "What it wrote in current_job().transaction() was undone" in rota("jobs", "debug", str(job_id)).err
