"""How a new embedded server gets its files: all of them, or none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from rota.stores.postgres.embedded.account import give
from rota.stores.postgres.embedded.process import run, settings
from rota.stores.postgres.embedded.trouble import failure, full

if TYPE_CHECKING:
    from rota.stores.postgres.embedded.binaries import Binaries
    from rota.stores.postgres.embedded.place import Settled

ROOM = 100 * 1024 * 1024
"""Free bytes for a new server: empty it takes half of that, and its log of changes grows at once."""

TUNING = settings(
    shared_buffers="128MB",
    max_connections=100,
    timezone="UTC",
    log_timezone="UTC",
    log_checkpoints="off",  # else the only thing that a quiet server ever logs
    cluster_name="rota",  # shown by ps
)
"""Written into postgresql.conf once; an operator may change it there. What keeps others out is not in it."""

LOCALE = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
CREATE_DATABASE = Path(__file__).with_name("create_database.sql")


def make_files(settled: Settled, programs: Binaries, alive: int) -> None:
    """Make the files of a new server with the database `rota`, on disk for good.

    They get their name last, so whatever ends this early leaves nothing that could be mistaken for a server.
    """
    home, account = settled.home, settled.account
    free = shutil.disk_usage(home).free
    if free < ROOM:
        raise full(home, free, ROOM)
    fresh = home / "data.new"
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir(mode=0o700)
    give(fresh, account)
    initdb, postgres = programs.program("initdb"), programs.program("postgres")
    create = CREATE_DATABASE.read_text().rstrip() + "\n\n"  # what ends a statement in single-user mode
    by_itself = settings(exit_on_error="on", log_checkpoints="off")
    steps: list[tuple[list[str | Path], str | None]] = [
        ([initdb, "-D", fresh, "-U", "rota", "--auth=trust", "--no-sync", *LOCALE, *TUNING], None),
        ([postgres, "--single", "-j", "-F", "-D", fresh, *by_itself, "template1"], create),
        ([initdb, "-D", fresh, "--sync-only"], None),  # once, for both steps before
    ]
    for command, typed in steps:
        done = run(command, account=account, alive=alive, typed=typed)
        if done.returncode != 0:
            shutil.rmtree(fresh, ignore_errors=True)
            raise failure(done.stdout, what=f"making the embedded PostgreSQL in {home}")
    fresh.rename(home / "data")
    _sync(home)


def _sync(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
