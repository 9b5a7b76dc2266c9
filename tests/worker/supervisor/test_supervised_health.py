"""What a supervised worker tells its platform: probes over HTTP, `rota health`, and systemd's socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest
from psycopg import conninfo, sql
from supervisor_stage import ask, eventually

from rota._core.job import State

pytestmark = pytest.mark.slow  # real processes, each with a start of its own


def test_the_health_port_answers_what_platforms_ask(stage):
    worker = stage.work("--health-port", "0")
    port = worker.port()
    assert ask(port, "/livez") == (200, "ok"), "it lives before its children work"
    worker.working()
    eventually(lambda: ask(port, "/readyz")[0] == 200)

    assert ask(port, "/readyz") == (200, "child 1 is ready")
    assert ask(port, "/startupz") == (200, "ok")
    assert ask(port, "/nothing")[0] == 404
    handle = stage.enqueue("sleepy", {"seconds": 1.0})
    stage.begun("sleepy")
    worker.signal(signal.SIGTERM)
    assert eventually(lambda: ask(port, "/readyz") == (503, "stopping"))
    assert ask(port, "/livez") == (200, "ok")
    assert worker.end() == 0
    assert stage.job(handle).state is State.COMPLETED


def test_prometheus_reads_the_numbers_at_the_health_port(stage):
    worker = stage.work("--health-port", "0")
    port = worker.port()
    worker.working()

    assert eventually(lambda: ask(port, "/metrics")[0] == 200)
    page = ask(port, "/metrics")[1]
    assert 'rota_read_ok{part="figures"} 1.0' in page
    assert "rota_workers 1.0" in page


def test_rota_health_asks_the_worker_of_this_machine(stage):
    worker = stage.work("--health-port", "0")
    port = worker.port()
    worker.working()
    eventually(lambda: ask(port, "/readyz")[0] == 200)

    def health(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rota.cli", "health", *arguments], capture_output=True, text=True, timeout=20,
            cwd=stage.directory,
        )  # fmt: skip

    well = health("--port", str(port))
    worker.stop()
    gone = health("--port", str(port))

    assert (well.returncode, well.stdout) == (0, "yes\tchild 1 is ready\n")
    assert gone.returncode == 3
    assert f"no worker answers at 127.0.0.1:{port}" in gone.stderr


def test_a_worker_outlives_its_database_and_says_that_it_is_away(stage, administrator):
    worker = stage.work("--health-port", "0", lease=3)
    children = worker.working()
    port = worker.port()
    eventually(lambda: ask(port, "/readyz")[0] == 200)
    name = sql.Identifier(conninfo.conninfo_to_dict(stage.url)["dbname"])
    administrator.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name))
    stage.connection.close()
    administrator.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
        [conninfo.conninfo_to_dict(stage.url)["dbname"]],
    )
    _, words = eventually(lambda: (found := ask(port, "/readyz"))[0] == 503 and found)

    assert "the store has not answered" in words
    assert worker.children() == children
    administrator.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))
    eventually(lambda: ask(port, "/readyz")[0] == 200)
    assert worker.children() == children
    assert worker.stop() == 0


def test_a_worker_whose_database_was_never_there_waits_for_it(stage):
    worker = stage.work("--health-port", "0", ROTA_URL="postgresql://127.0.0.1:1/nowhere")
    port = worker.port()
    eventually(lambda: "reaches for the store" in ask(port, "/readyz")[1])

    assert ask(port, "/startupz")[0] == 503
    assert ask(port, "/livez")[0] == 200
    assert worker.stop() == 0


def test_a_health_port_that_is_taken_is_a_clear_error(stage):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        worker = stage.work("--health-port", str(port))

        assert worker.end() == 2
    assert f"the health port 127.0.0.1:{port} cannot be opened" in worker.said
    assert "choose another with --health-port" in worker.said


@pytest.mark.parametrize("abstract", [False, True], ids=["a file", "an abstract address"])
def test_systemd_hears_that_it_is_ready_alive_and_stopping(stage, tmp_path, abstract):
    address = f"@rota-{os.getpid()}" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + address[1:] if abstract else address)
        systemd.settimeout(15)
        worker = stage.work(NOTIFY_SOCKET=address, WATCHDOG_USEC="600000")
        heard: list[str] = []

        def until(word: str) -> None:
            while not any(word in text for text in heard):
                heard.append(systemd.recv(4096).decode())

        until("READY=1")
        until("STATUS=child 1 is ready")
        until("WATCHDOG=1")
        heard.clear()
        worker.signal(signal.SIGHUP)
        until("RELOADING=1\nMONOTONIC_USEC=")
        until("READY=1")
        worker.signal(signal.SIGTERM)
        until("STOPPING=1")
        until("STATUS=stopping")

        assert worker.end() == 0
