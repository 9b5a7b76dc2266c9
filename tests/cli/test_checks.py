"""`rota doctor`, `health` and `config`: what is wrong, and what to do about it."""

from __future__ import annotations

import json
import socket
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from threading import Thread

import pytest

from build import a_job, a_session


def findings(said):
    return [(found["level"], found["what"], found["fix"]) for found in json.loads(said.out)]


def levels(said):
    return {what.partition(":")[0]: level for level, what, _ in findings(said)}


def test_a_healthy_store_is_found_to_be_healthy_line_by_line(rota, jobs):
    jobs.do(a_session)

    said = rota("doctor", "--json")

    assert said.code == 0
    assert said.err == "All is well.\n"
    assert levels(said) == dict.fromkeys(
        (
            "store",
            "connection",
            "server",
            "schema",
            "rights",
            "pooler",
            "hints",
            "clock",
            "notices",
            "vacuum",
            "workers",
            "tasks",
            "queue",
            "health port",
        ),
        "ok",
    )


def test_in_a_pipe_each_finding_is_a_line_of_level_words_and_fix(rota, jobs):
    said = rota("doctor")

    rows = [line.split("\t") for line in said.lines]
    assert {row[0] for row in rows} == {"ok", "warn"}
    assert ["warn", "workers: none is running", "Start one with `rota worker APP`."] in rows
    assert said.err == "No problem, 1 warning.\n"


def test_an_unreachable_server_is_bad_and_exit_1(rota):
    said = rota("doctor", "--json", "--url", "postgresql://nobody:secret@127.0.0.1:1/none")

    assert said.code == 1
    assert levels(said) == {"store": "ok", "connection": "bad", "health port": "ok"}
    assert "secret" not in said.out + said.err
    assert said.err == "1 problem, 0 warnings.\n"


def test_a_missing_schema_is_bad_and_names_the_command(rota, bare):
    said = rota("doctor", "--json", "--url", bare)

    assert said.code == 1
    assert ("bad", "Run `rota migrate`.") in [(level, fix) for level, _, fix in findings(said)]


def test_jobs_that_no_living_worker_knows_are_named_with_the_way_out(rota, jobs):
    jobs.do(a_session)  # it knows the task email
    jobs.add("email")
    jobs.add("gone", times=2)

    said = rota("doctor", "--json")

    assert (
        "warn",
        "tasks: 2 pending jobs of 'gone', which no living worker knows",
        "Deploy the code that defines it, or `rota jobs cancel --task gone --state pending`.",
    ) in findings(said)


def test_a_job_that_has_waited_for_hours_is_a_warning(rota, jobs):
    from datetime import UTC, datetime, timedelta

    long_ago = datetime.now(UTC) - timedelta(hours=3)
    jobs.do(lambda store: store.enqueue([a_job(run_at=long_ago)]))

    said = rota("doctor", "--json")

    [waiting] = [found for found in findings(said) if found[1].startswith("queue:")]
    assert waiting[0] == "warn"
    assert waiting[1].startswith("queue: the oldest due job has waited 3h")


def test_an_embedded_server_in_production_is_a_warning(rota, tmp_path, monkeypatch):
    monkeypatch.setenv("ROTA_ENV", "production")

    said = rota("doctor", "--json", "--url", f"embedded:{tmp_path}/server")

    [_, (level, what, fix), (_, probes, _)] = findings(said)
    assert probes == "health port: none"
    assert (level, fix) == (
        "warn",
        "Jobs live and die with this machine; set ROTA_URL to a PostgreSQL server.",
    )
    assert (
        what
        == f"store: the embedded server in {tmp_path}/server, and this is production (ROTA_ENV=production)"
    )


def test_doctor_and_health_never_make_or_start_a_server(rota, embedded, tmp_path):
    doctor = rota("doctor", "--json", "--url", embedded)
    health = rota("health", "--url", embedded)

    stopped = f"the embedded PostgreSQL in {tmp_path}/server is not running"
    doubt = "(none was made there yet: is this the right directory?)"
    start = f"`rota db start --url {embedded}` starts it."
    assert (doctor.code, health.code) == (1, 3)
    assert findings(doctor)[0] == ("bad", f"store: {stopped} {doubt}", start)
    assert (health.out, health.err) == ("", f"rota: {stopped} {doubt}; {start}\n")
    assert not (tmp_path / "server").exists()


def test_health_is_yes_when_the_store_answers(rota, jobs):
    said = rota("health")

    assert (said.code, said.out, said.err) == (0, "yes\t0\n", "")


def test_health_can_ask_for_workers(rota, jobs):
    none = rota("health", "--workers", 1)
    jobs.do(a_session)
    one = rota("health", "--workers", 1, "--json")

    assert (none.code, none.out) == (1, "no\t0\n")
    assert none.err == "0 workers living, 1 wanted. Start more with `rota worker`.\n"
    assert (one.code, json.loads(one.out)) == (0, [{"healthy": True, "workers": 1}])


def test_health_of_an_unreachable_store_is_exit_3(rota):
    assert rota("health", "--url", "postgresql://127.0.0.1:1/none", "--timeout", "10s").code == 3


def test_health_of_an_old_schema_is_exit_1(rota, bare):
    said = rota("health", "--url", bare)

    assert said.code == 1
    assert "Run `rota migrate`" in said.err


def test_health_gives_up_on_a_server_that_does_not_answer(rota):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said = rota(
            "health", "--timeout", "0.5s", "--url", f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none"
        )

    assert said.code == 3
    assert "the store did not answer within 500ms." in said.err


def test_health_asks_a_worker_that_listens_on_every_address_of_ipv6_by_ipv6(rota):
    class Worker(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"child 1 is ready")

        def log_message(self, *_: object) -> None: ...

    class Server(TCPServer):
        address_family = socket.AF_INET6

    try:
        server = Server(("::1", 0), Worker)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with server:
        Thread(target=server.handle_request, daemon=True).start()
        said = rota("health", "--port", f"[::]:{server.server_address[1]}")

    assert (said.code, said.out) == (0, "yes\tchild 1 is ready\n")


def test_config_shows_each_setting_with_its_origin_and_masks_passwords(rota, monkeypatch, tmp_path):
    (tmp_path / "rota.toml").write_text('app = "jobs.py"\nlease = "30s"\n')
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:secret@db/shop")
    monkeypatch.setenv("ROTA_GRACE", "7")

    rows = {
        name: (value, origin) for name, value, origin in (line.split("\t") for line in rota("config").lines)
    }

    assert rows["url"] == ("postgresql://ann:***@db/shop", "DATABASE_URL")
    assert rows["app"] == ("jobs.py", "rota.toml")
    assert rows["lease"] == ("30.0", "rota.toml")
    assert rows["grace"] == ("7.0", "ROTA_GRACE")
    assert rows["beat"] == ("5.0", "default")
    assert rows["store"] == ("postgresql://ann:***@db/shop", "in effect")


def test_config_with_the_flag_shows_the_flag(rota):
    shown = json.loads(rota("config", "--json", "--url", "postgresql://ann:secret@db/shop").out)

    assert {"setting": "url", "value": "postgresql://ann:***@db/shop", "origin": "argument"} in shown


def test_a_setting_that_does_not_exist_is_a_usage_error(rota, tmp_path):
    (tmp_path / "rota.toml").write_text("laese = 30\n")

    said = rota("config")

    assert said.code == 2
    assert said.err == "rota: there is no setting 'laese' (from rota.toml); did you mean 'lease'?\n"


def test_production_without_an_address_is_a_usage_error(rota, monkeypatch):
    monkeypatch.setenv("ROTA_ENV", "production")

    for command in (("jobs", "list"), ("health",), ("config",)):
        said = rota(*command)
        assert said.code == 2
        assert "no database address is set, and this is production (ROTA_ENV=production)." in said.err


def test_a_database_that_does_not_exist_is_named(rota, bare):
    said = rota("jobs", "list", "--url", bare.replace("/bare_", "/not_"))

    assert said.code in (1, 3)
    assert "not_" in said.err
