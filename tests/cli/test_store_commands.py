"""`rota migrate` and `rota db`: the schema and the server under it."""

from __future__ import annotations

import json
import os
import sys

import pexpect
import psycopg
import pytest

from rota.stores.postgres.migrate import migrations


@pytest.mark.req("D32")
def test_migrate_applies_what_is_missing_once(rota, bare):
    first = rota("migrate", "--url", bare)
    second = rota("migrate", "--url", bare)

    assert first.code == second.code == 0
    assert first.lines[0] == "0001_engine"
    assert first.err.endswith("applied.\n")
    assert (second.out, second.err) == ("", "The schema is up to date already.\n")


def test_check_is_exit_1_while_something_is_pending_and_changes_nothing(rota, bare):
    before = rota("migrate", "--check", "--url", bare, "--json")
    again = rota("migrate", "--check", "--url", bare)
    rota("migrate", "--url", bare)
    after = rota("migrate", "--check", "--url", bare)

    assert (before.code, again.code, after.code) == (1, 1, 0)
    assert json.loads(before.out)[0] == {"pending": "0001_engine"}
    assert again.err.endswith("pending. Run `rota migrate`.\n")
    assert (after.out, after.err) == ("", "The schema is up to date.\n")


def test_the_sql_needs_no_database_and_makes_the_same_schema(rota, bare, monkeypatch):
    monkeypatch.setenv("ROTA_URL", "postgresql://127.0.0.1:1/none")
    script = rota("migrate", "--sql")

    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute(script.out)

    assert (script.code, script.err) == (0, "")
    assert rota("migrate", "--check", "--url", bare).code == 0
    assert rota("jobs", "list", "--url", bare).code == 4


def test_the_pending_sql_is_what_this_database_lacks(rota, bare):
    lacking = rota("migrate", "--sql", "--pending", "--url", bare)
    rota("migrate", "--url", bare)
    none = rota("migrate", "--sql", "--pending", "--url", bare)

    assert "CREATE TABLE rota.jobs" in lacking.out
    assert (none.code, none.out, none.err) == (0, "", "The schema is up to date; there is no SQL to run.\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--sql", "--check"], "--check and --sql were both given; choose one."),
        (["--pending"], "--pending needs --sql."),
    ],
)
def test_options_of_migrate_that_contradict_each_other_are_usage_errors(rota, options, words):
    said = rota("migrate", *options)

    assert said.code == 2
    assert words in said.err


def test_migrating_an_unreachable_database_is_exit_3(rota):
    assert rota("migrate", "--url", "postgresql://127.0.0.1:1/none").code == 3


@pytest.mark.slow
def test_the_embedded_server_is_started_used_dumped_and_stopped(rota, process, embedded, tmp_path):
    url = embedded

    off = rota("db", "status", "--url", url)
    start = rota("db", "start", "--url", url)
    again = rota("db", "start", "--url", url, "--json")
    status = rota("db", "status", "--url", url, "--json")
    path = rota("db", "path", "--url", url)
    listed = rota("jobs", "list", "--url", url)
    query = process("db", "psql", "--url", url, "--", "-tAc", "SELECT count(*) FROM rota.jobs")
    broken = process("db", "psql", "--url", url, "--", "-c", "SELECT nonsense")
    dump = process("db", "dump", "--url", url)
    stop = rota("db", "stop", "--url", url)
    stopped = rota("db", "stop", "--url", url)
    ill = rota("health", "--url", url)
    status_after = rota("db", "status", "--url", url)

    assert off.code == 1
    assert f"It is not running; start it with `rota db start --url {url}`." in off.err
    assert start.out.startswith("postgresql://")
    assert start.err.startswith(f"No store here yet: making a new PostgreSQL in {tmp_path}/server …\n")
    assert f" is running in {tmp_path}/server." in start.err
    assert json.loads(again.out) == {"url": start.out.strip()}
    assert "was running already" in again.err
    assert json.loads(status.out)["running"] is True
    assert path.out == json.loads(status.out)["data"] + "\n"
    assert (listed.code, listed.err) == (4, "No job matches.\n")
    assert (query.code, query.out) == (0, "0\n")
    assert broken.code == 1
    assert "CREATE TABLE rota.jobs" in dump.out
    assert (stop.code, stop.err) == (0, f"Stopped the server in {tmp_path}/server.\n")
    assert (stopped.code, stopped.err) == (4, f"No server runs in {tmp_path}/server.\n")
    assert ill.code == 3
    assert f"the embedded PostgreSQL in {tmp_path}/server is not running; `rota db start --url" in ill.err
    assert status_after.code == 1


@pytest.mark.slow
def test_a_command_says_that_it_makes_a_store_and_on_a_terminal_that_it_starts_one(rota, embedded, tmp_path):
    made = rota("jobs", "list", "--json", "--url", embedded)
    rota("db", "stop", "--url", embedded)
    piped = rota("jobs", "list", "--url", embedded)
    rota("db", "stop", "--url", embedded)
    shown, _ = pexpect.run(
        f"{sys.executable} -m rota.cli jobs list --url {embedded}",
        withexitstatus=True,
        encoding="utf-8",
        timeout=60,
        env=dict(os.environ),
    )

    new = f"No store here yet: making a new PostgreSQL in {tmp_path}/server …\n"
    assert (made.code, made.out, made.err) == (4, "[]\n", f"{new}No job matches.\n")
    assert (piped.code, piped.err) == (4, "No job matches.\n")
    assert f"Starting PostgreSQL in {tmp_path}/server …" in shown


@pytest.mark.slow
def test_ctrl_c_at_the_prompt_of_psql_keeps_psql(embedded):
    psql = pexpect.spawn(
        sys.executable,
        ["-m", "rota.cli", "db", "psql", "--url", embedded],
        env={**os.environ, "PAGER": "cat"},
        encoding="utf-8",
        timeout=60,
    )
    try:
        psql.expect("=[#>] ")
        psql.sendintr()
        psql.expect("=[#>] ")
        psql.sendline("SELECT 6 * 7 AS answer;")
        psql.expect("42")
        psql.sendline("\\q")
        psql.expect(pexpect.EOF)
    finally:
        psql.close(force=True)

    assert psql.exitstatus == 0


@pytest.mark.parametrize("verb", ["start", "stop", "status", "path"])
def test_a_server_that_is_not_embedded_is_not_ours_to_start_or_stop(rota, verb):
    said = rota("db", verb, "--url", "postgresql://ann:secret@db/shop")

    assert said.code == 2
    assert said.err == (
        "rota: the store is postgresql://ann:***@db/shop (from argument), which is no embedded server. "
        "Name one with --url embedded: or --url embedded:PATH.\n"
    )


def test_psql_gets_the_password_by_the_environment(rota, tmp_path, monkeypatch):
    program = tmp_path / "psql"
    program.write_text('#!/bin/sh\necho "$@ [$PGPASSWORD]" > said\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    rota("db", "psql", "--url", "postgresql://ann:se%40cret@db/shop", "--", "-c", "SELECT 1")

    assert (tmp_path / "said").read_text() == "postgresql://ann@db/shop -c SELECT 1 [se@cret]\n"


def test_without_the_client_programs_psql_says_what_to_install(rota, monkeypatch):
    monkeypatch.setenv("PATH", "")

    said = rota("db", "psql", "--url", "postgresql://db/shop")

    assert said.code == 1
    assert (
        "psql is not installed here. Install the PostgreSQL client programs (postgresql-client)." in said.err
    )


def test_the_memory_store_has_no_database_for_psql(rota):
    said = rota("db", "psql", "--url", "memory://")

    assert said.code == 2
    assert "the memory store has no database for psql." in said.err


LATEST = max(one.version for one in migrations())


def test_migrating_to_a_version_stops_there_and_the_rest_follows(rota, bare):
    first = rota("migrate", "--to", "3", "--url", bare)
    again = rota("migrate", "--to", "3", "--url", bare)
    rest = rota("migrate", "--url", bare)

    assert [line[:4] for line in first.lines] == ["0001", "0002", "0003"]
    assert f"has version 3, and this code works with {LATEST} only" in first.err
    assert again.err.startswith("The schema has version 3 already.")
    assert rest.lines[0].startswith("0004")
    assert (first.code, again.code, rest.code) == (0, 0, 0)
    assert "Nothing is pending up to version 3." in rota("migrate", "--check", "--to", "3", "--url", bare).err


def test_a_schema_never_goes_back(rota, bare):
    rota("migrate", "--to", "3", "--url", bare)
    said = rota("migrate", "--to", "2", "--url", bare)

    assert (said.code, said.out) == (1, "")
    assert (
        "the database has schema version 3, and --to 2 lies before it. Migrations only go forward" in said.err
    )
    assert json.loads(rota("schema", "--json", "--url", bare).out)["version"] == 3


@pytest.mark.parametrize("version", ["0", "9999", "-1"])
@pytest.mark.parametrize("more", [(), ("--sql",), ("--check",)])
def test_a_version_that_nobody_knows_is_refused(rota, version, more):
    said = rota("migrate", "--to", version, *more, "--url", "postgresql://127.0.0.1:1/none")

    assert said.code == 2
    assert f"there is no schema version {version}: this code knows 1 to {LATEST}." in said.err


def test_check_and_sql_know_of_a_version_too(rota, bare):
    lacking = rota("migrate", "--check", "--to", "2", "--url", bare)
    rota("migrate", "--to", "2", "--url", bare)
    well = rota("migrate", "--check", "--to", "2", "--url", bare)
    script = rota("migrate", "--sql", "--to", "2")
    between = rota("migrate", "--sql", "--pending", "--to", "4", "--url", bare)

    assert (lacking.code, len(lacking.lines), well.code) == (1, 2, 0)
    assert lacking.err.endswith("2 migrations pending. Run `rota migrate --to 2`.\n")
    assert "-- 0002_functions" in script.out
    assert "-- 0003_" not in script.out
    assert "-- 0002_functions" not in between.out
    assert "-- 0003_" in between.out
    assert "-- 0005_" not in between.out


def test_the_schema_tells_its_version_and_what_is_pending(rota, bare):
    nothing = rota("schema", "--url", bare)
    rota("migrate", "--to", "2", "--url", bare)
    part = rota("schema", "--url", bare)
    rota("migrate", "--url", bare)
    whole = json.loads(rota("schema", "--json", "--url", bare).out)

    assert "The database has no schema yet" in nothing.err
    assert [line.split("\t")[2] for line in part.lines][:3] == ["applied", "applied", "pending"]
    assert f"Version 2 of {LATEST}: {LATEST - 2} migrations pending. Run `rota migrate`." in part.err
    assert (whole["version"], whole["latest"], whole["pending"]) == (LATEST, LATEST, [])
    assert whole["migrations"][0]["name"] == "0001_engine"


def test_a_schema_that_is_newer_than_the_code_is_told(rota, jobs):
    with psycopg.connect(jobs.url, autocommit=True) as connection:
        connection.execute("INSERT INTO rota.migrations (version, name) VALUES (9999, '9999_later')")

    assert f"has version 9999, and this code knows only {LATEST}" in rota("schema").err


def test_the_whole_schema_as_sql_needs_no_database(rota):
    assert (
        rota("schema", "--sql", "--url", "postgresql://127.0.0.1:1/none").out == rota("migrate", "--sql").out
    )


@pytest.mark.parametrize("more", [(), ("--to", "5"), ("--check",)])
def test_a_store_without_a_schema_lacks_nothing(rota, more):
    said = rota("migrate", *more, "--url", "memory://")

    assert (said.code, said.out) == (0, "")
    assert "version 5 already" not in said.err
