"""Root must lend the server an account, and the account must be able to get at its files."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import psutil
import psycopg
import pytest
from embedded_stage import (
    NAMELESS,
    NOBODY,
    as_plain_user,
    ask,
    in_child,
    message_of,
    postmaster_of,
    read_back,
    wait_for_the_end_of,
    write_down,
)

from rota.errors import EmbeddedUnavailable
from rota.stores.postgres.embedded import EmbeddedServer, account, binaries, trouble

pytestmark = [
    pytest.mark.slow,  # each starts servers of its own
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can lend the server another account"),
]


def test_another_user_is_kept_from_the_socket(running: EmbeddedServer) -> None:
    url = running.start()

    def intrude() -> str:
        try:
            return ask(url, "SELECT 'inside'")
        except psycopg.OperationalError as error:
            return str(error)

    assert "Permission denied" in in_child(intrude, NAMELESS)


def test_root_lends_the_server_an_account_and_keeps_its_secrets(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    server.start()
    environment = psutil.Process(postmaster_of(server)).environ()

    assert server.data_path.owner() in ("postgres", "_postgres", "nobody")
    assert "hush" not in environment.values()


def test_what_root_starts_in_the_project_of_a_plain_user_stays_wholly_theirs(plain_room: Path) -> None:
    path = plain_room / "new" / ".rota"
    url = EmbeddedServer(path).start()

    assert {entry.stat().st_uid for entry in (path.parent, path, *path.iterdir())} == {NOBODY.pw_uid}
    assert as_plain_user(EmbeddedServer(path).start) == url
    assert as_plain_user(EmbeddedServer(path).stop) is True
    assert as_plain_user(EmbeddedServer(path).start) == EmbeddedServer(path).url()


def test_root_in_a_private_project_keeps_the_files_elsewhere_and_says_where(room: Path) -> None:
    room.chmod(0o700)
    server = EmbeddedServer(room / ".rota")
    write_down(server.start())

    assert server.data_path.is_relative_to("/var/lib/rota")
    assert json.loads((server.path / "embedded.json").read_text())["home"] == str(server.data_path.parent)
    assert in_child(lambda: read_back(EmbeddedServer(server.path).start())) == 42
    home = server.data_path.parent
    server.destroy()
    assert not home.exists()


def test_a_private_project_that_moves_takes_its_files_along_and_a_copy_does_not(room: Path) -> None:
    room.chmod(0o700)
    write_down(EmbeddedServer(room / "old").start())
    EmbeddedServer(room / "old").stop()
    (room / "old").rename(room / "new")
    moved = EmbeddedServer(room / "new")

    assert read_back(moved.start()) == 42

    moved.stop()
    shutil.copytree(moved.path, room / "copy")

    refusal = message_of(EmbeddedServer(room / "copy").start, EmbeddedUnavailable)
    assert (
        f"{room / 'copy'} is a copy: the data that it names, in {moved.data_path.parent}, belongs to "
        in refusal
    )
    assert f"Remove {room / 'copy'} to begin with an empty database there." in refusal
    shutil.rmtree(room / "copy")


def test_deleting_a_private_project_stops_its_server_at_the_next_start(room: Path) -> None:
    room.chmod(0o700)
    server = EmbeddedServer(room / ".rota")
    write_down(server.start())
    forsaken, forgotten = server.data_path.parent, postmaster_of(server)
    shutil.rmtree(server.path)
    url = server.start()
    wait_for_the_end_of(forgotten)

    assert ask(url, "SELECT to_regclass('note')") is None
    shutil.rmtree(forsaken)


def test_programs_below_a_private_home_are_copied_to_where_the_account_can_run_them(
    room: Path, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = server.psql_path().parents[1]
    private = room / "home"
    private.mkdir(mode=0o700)
    shutil.copytree(installed, private / binaries.WHEEL / installed.name)
    libraries = installed.parents[1] / f"{binaries.WHEEL}.libs"
    if libraries.exists():
        shutil.copytree(libraries, private / libraries.name)
    (private / binaries.WHEEL / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(private))
    url = server.start()
    program = Path(psutil.Process(postmaster_of(server)).exe())
    server.stop()

    assert program.parents[3].name.startswith("programs-18-")
    assert program.is_relative_to("/var/lib/rota")
    assert EmbeddedServer(server.path).start() == url
    shutil.rmtree(program.parents[3])


def test_files_that_belong_to_somebody_else_are_refused(server: EmbeddedServer) -> None:
    path = server.path
    os.chown(path / "data", 0, 0)

    refusal = message_of(EmbeddedServer(path).start, EmbeddedUnavailable)
    assert refusal == (
        f"{path / 'data'} belongs to root, this process to root, and PostgreSQL runs only as the owner of its files, "
        f"and never as root. Run Rota as the owner, or change that with chown -R. {trouble.ELSEWHERE}"
    )


def test_a_user_without_a_name_is_told_so(room: Path) -> None:
    os.chown(room, NAMELESS, NAMELESS)

    refusal = in_child(
        lambda: message_of(EmbeddedServer(room / ".rota").start, EmbeddedUnavailable), NAMELESS
    )
    assert "PostgreSQL wants its user to have a name, and this machine has none for uid 54321." in refusal
    assert "Add it to /etc/passwd" in refusal


def test_files_kept_elsewhere_that_are_gone_are_not_silently_replaced(room: Path) -> None:
    room.chmod(0o700)
    server = EmbeddedServer(room / ".rota")
    server.start()
    server.stop()
    home = server.data_path.parent
    shutil.rmtree(home)

    assert message_of(server.start, EmbeddedUnavailable) == (
        f"the data of the embedded PostgreSQL in {server.path} was kept in {home}, and that is gone (a container "
        f"made anew?). Remove {server.path} to begin with an empty database. {trouble.ELSEWHERE}"
    )
    shutil.rmtree(server.path)


def test_a_machine_without_any_account_to_lend_is_told_so(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "SERVICE_ACCOUNTS", ("no-such-user", "nor-this"))

    assert message_of(EmbeddedServer(room / ".rota").start, EmbeddedUnavailable) == (
        "PostgreSQL refuses to run as root, and this machine has none of the users no-such-user, nor-this to run "
        "it instead. Add one (useradd --system postgres), run Rota as a plain user, or set DATABASE_URL to a "
        "PostgreSQL server."
    )


def test_files_that_no_account_can_reach_anywhere_are_refused(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.chmod(0o700)
    monkeypatch.setattr(binaries, "ROOTS_OWN", room / "elsewhere")
    path = room / ".rota"

    refusal = message_of(EmbeddedServer(path).start, EmbeddedUnavailable)
    assert f"no other user can reach {room / 'elsewhere'}/server-" in refusal
    assert f"where the data of {path} would be. Run Rota as a plain user. {trouble.ELSEWHERE}" in refusal


def test_programs_that_no_account_can_reach_anywhere_are_refused(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.chmod(0o700)
    prefix = room / binaries.WHEEL / "pginstall18"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "postgres").touch()
    monkeypatch.setattr(binaries, "ROOTS_OWN", room / "elsewhere")
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    nobody = account.Account(NOBODY.pw_uid, NOBODY.pw_gid, "nobody")

    assert message_of(
        lambda: binaries.within_reach(binaries.Binaries(prefix, 18), nobody), EmbeddedUnavailable
    ) == (
        f"PostgreSQL refuses to run as root, and user nobody cannot reach its programs in {prefix}; copying them to "
        f"{room / 'elsewhere'} or {room} failed. Install Rota where every user may read it, run it as a plain user, "
        "or set DATABASE_URL to a PostgreSQL server."
    )
