"""Who may use an embedded server, and where it may be."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from embedded_stage import (
    NOBODY,
    ROOT,
    as_plain_user,
    ask,
    in_child,
    postmaster_of,
    read_back,
    socket_directory,
    write_down,
)

from rota.stores.postgres.embedded import EmbeddedServer


def test_a_plain_user_has_a_server_and_finds_it_again(plain_room: Path) -> None:
    path = plain_room / ".rota"

    def start() -> tuple[str, str]:
        server = EmbeddedServer(path)
        return server.start(), ask(server.url(), "SELECT current_user")

    first, second = as_plain_user(start), as_plain_user(start)

    assert first == second
    assert (path / "data").stat().st_uid == (NOBODY.pw_uid if ROOT else os.geteuid())


def test_nobody_else_can_connect_and_no_port_is_open(running: EmbeddedServer) -> None:
    url = running.start()
    sockets = socket_directory(running)

    assert ask(url, "SHOW listen_addresses") == ""
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert stat.S_IMODE(running.data_path.stat().st_mode) == 0o700
    assert stat.S_IMODE(running.log_path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["long" * 60, 'it\'s "so", 100% ünusual $HOME'], ids=["long", "odd"])
def test_a_long_or_odd_path_works_and_is_found_by_another_process(
    room: Path, server: EmbeddedServer, name: str
) -> None:
    server = EmbeddedServer(server.path.rename(room / name))
    url = server.start()
    sockets = socket_directory(server)

    assert len(os.fsencode(sockets / ".s.PGSQL.5432")) <= 103
    assert in_child(EmbeddedServer(server.path).start) == url
    os.kill(postmaster_of(server), signal.SIGKILL)
    assert ask(server.start(), "SELECT 1") == 1
    assert not sockets.exists()
    sockets = socket_directory(server)
    server.stop()
    assert not sockets.exists()


def test_a_project_moved_while_its_server_runs_is_still_served(server: EmbeddedServer) -> None:
    write_down(server.start())
    moved = EmbeddedServer(server.path.parent.parent / "moved")
    server.path.rename(moved.path)

    assert read_back(moved.start()) == 42
    assert moved.stop()
    assert read_back(moved.start()) == 42


def test_a_copy_of_a_running_server_is_a_server_of_its_own(server: EmbeddedServer) -> None:
    write_down(server.start())
    ask(server.url(), "SELECT pg_switch_wal()")
    copy = EmbeddedServer(server.path.parent / "copy")
    subprocess.run(["cp", "-a", server.path, copy.path], check=True)

    assert copy.start() != server.url()
    assert ask(copy.url(), "SHOW data_directory") == str(copy.data_path)
