"""An embedded server is found, shared, killed and stopped, by real processes that are really killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import psycopg
import pytest
from embedded_stage import (
    ROOT,
    Child,
    as_plain_user,
    ask,
    in_child,
    message_of,
    postmaster_of,
    read_back,
    socket_directory,
    wait_for_the_end_of,
    write_down,
)

from rota.errors import StoreUnavailable
from rota.stores.postgres.embedded import EmbeddedServer, process
from rota.stores.postgres.embedded.account import account_of
from rota.stores.postgres.embedded.binaries import from_wheel, within_reach

pytestmark = pytest.mark.slow  # real processes, each with a start of its own


def test_the_first_start_makes_a_server_and_the_next_one_finds_it(fresh: EmbeddedServer) -> None:
    url = fresh.start()
    again = EmbeddedServer(fresh.path)

    assert ask(url, "SELECT current_database()") == "rota"
    assert ask(url, "SHOW fsync") == "on"
    assert ask(url, "SHOW server_encoding") == "UTF8"
    assert ask(url, "SHOW TimeZone") == "UTC"
    assert again.start() == again.url() == url
    assert again.running()


def test_finding_a_running_server_is_quick_and_starts_no_process(running: EmbeddedServer) -> None:
    started: list[str] = []
    sys.addaudithook(
        lambda event, _: started.append(event) if event in ("subprocess.Popen", "os.fork") else None
    )

    def seconds_to_find_it() -> float:
        begin = time.perf_counter()
        EmbeddedServer(running.path).start()
        return time.perf_counter() - begin

    assert min(seconds_to_find_it() for _ in range(5)) < 0.05  # the quickest: this machine may be busy
    assert started == []


def test_two_processes_share_one_server(server: EmbeddedServer) -> None:
    in_child(lambda: write_down(EmbeddedServer(server.path).start()))

    assert read_back(server.start()) == 42


def test_five_processes_that_start_at_once_get_the_same_server(fresh: EmbeddedServer) -> None:
    begin = time.monotonic() + 0.2

    def start_together() -> str:
        time.sleep(begin - time.monotonic())
        return EmbeddedServer(fresh.path).start()

    children = [Child(start_together) for _ in range(5)]

    assert {child.result() for child in children} == {fresh.url()}
    assert fresh.log_path.read_text().count("starting PostgreSQL") == 1


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_the_server_survives_its_starter(server: EmbeddedServer, how: signal.Signals) -> None:
    def start_and_stay() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        write_down(EmbeddedServer(server.path).start())
        ready.send(b"!")
        time.sleep(60)

    ready, told = socket.socketpair()
    starter = Child(start_and_stay)
    told.recv(1)
    before = postmaster_of(server)
    starter.hurt(how)
    ready.close()
    told.close()

    assert read_back(server.start()) == 42
    assert postmaster_of(server) == before


def test_a_server_killed_hard_is_started_again_with_all_its_rows(server: EmbeddedServer) -> None:
    write_down(server.start())
    idle = psycopg.connect(server.url())
    os.kill(postmaster_of(server), signal.SIGKILL)

    assert read_back(server.start()) == 42
    with pytest.raises(psycopg.OperationalError):
        idle.execute("SELECT 1")
    idle.close()


def test_a_pid_file_from_before_a_reboot_that_names_a_living_process_is_no_obstacle(
    plain_server: EmbeddedServer,
) -> None:
    def reboot() -> int:
        server = plain_server
        write_down(server.start())
        pid_file = server.data_path / "postmaster.pid"
        _, _, rest = pid_file.read_text().partition("\n")
        os.kill(postmaster_of(server), signal.SIGKILL)
        bystander = subprocess.Popen(["sleep", "60"])
        pid_file.write_text(f"{bystander.pid}\n{rest}")
        try:
            return read_back(server.start())
        finally:
            bystander.kill()
            bystander.wait()

    assert as_plain_user(reboot) == 42


def test_a_starter_killed_while_it_makes_the_files_leaves_nothing_that_hinders_the_next(
    fresh: EmbeddedServer,
) -> None:
    starter = Child(fresh.start)
    while not any(fresh.path.glob("data.new/*")):
        time.sleep(0.001)
    os.kill(starter.pid, signal.SIGKILL)
    starter.hurt(signal.SIGKILL)

    assert ask(fresh.start(), "SELECT 1") == 1
    assert not (fresh.path / "data.new").exists()


def test_deleting_the_directory_of_a_running_server_begins_anew(server: EmbeddedServer) -> None:
    write_down(server.start())
    forgotten = postmaster_of(server)
    shutil.rmtree(server.path)
    url = server.start()
    os.kill(forgotten, signal.SIGINT)
    wait_for_the_end_of(forgotten)

    assert ask(url, "SELECT to_regclass('note')") is None
    assert server.running()


def test_a_server_started_by_hand_on_our_files_is_used_and_stopped_like_ours(server: EmbeddedServer) -> None:
    owner = account_of(server.data_path)
    pg_ctl = within_reach(from_wheel(), owner if ROOT else None).program("pg_ctl")
    by_hand = [pg_ctl, "-D", server.data_path, "-w", "-l", "/dev/null", "start"]
    by_hand += ["-o", f"-h '' -k {server.data_path}"]
    subprocess.run(
        by_hand, user=owner.uid if ROOT else None, cwd="/", stdout=subprocess.DEVNULL, check=True, timeout=30
    )

    assert f"host={server.data_path}&" in server.start()
    assert server.stop()
    assert not server.running()


def test_stopping_ends_the_server_for_all_and_keeps_its_rows(server: EmbeddedServer) -> None:
    write_down(server.start())
    other = psycopg.connect(server.url())
    sockets = socket_directory(server)

    assert in_child(EmbeddedServer(server.path).stop) is True
    assert not server.running()
    assert not sockets.exists()
    assert server.stop() is False
    with pytest.raises(psycopg.OperationalError):
        other.execute("SELECT 1")
    other.close()
    assert message_of(server.url, StoreUnavailable) == (
        f"the embedded PostgreSQL in {server.path} is not running. Start it with `rota db start`."
    )
    assert read_back(server.start()) == 42


def test_stopping_what_never_ran_leaves_no_trace(fresh: EmbeddedServer) -> None:
    assert fresh.stop() is False
    assert fresh.running() is False
    assert not fresh.path.exists()


def test_destroying_removes_everything_but_what_others_put_there(server: EmbeddedServer) -> None:
    server.start()
    (server.path / "mine.txt").write_text("keep")
    server.destroy()
    server.destroy()

    assert [path.name for path in server.path.iterdir()] == ["mine.txt"]


def test_psql_and_pg_dump_of_the_wheel_work_with_the_address(running: EmbeddedServer) -> None:
    write_down(running.start())
    psql = [running.psql_path(), "-At", "-c", "SELECT written FROM note", running.url()]
    dump = [running.dump_path(), running.url()]

    assert subprocess.run(psql, capture_output=True, text=True, check=True).stdout == "42\n"
    assert (
        "CREATE TABLE public.note" in subprocess.run(dump, capture_output=True, text=True, check=True).stdout
    )
    assert running.version().startswith("18.")
    assert running.version() in ask(running.url(), "SHOW server_version")


def test_a_log_that_has_grown_long_is_set_aside_at_the_next_start(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.log_path.write_text("an old word\n" * 10)
    monkeypatch.setattr(process, "LONGEST_LOG", 100)
    server.start()

    assert "an old word" not in server.log_path.read_text()
    assert "an old word" in server.log_path.with_name("server.log.old").read_text()
