"""What the tests of the embedded server share: processes to start and kill, users to be, questions to ask."""

from __future__ import annotations

import fcntl  # noqa: F401  a child that is another user may be unable to load it later
import os
import pickle
import pwd
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil
import psycopg
import pytest

from rota.errors import RotaError
from rota.stores.postgres.embedded import EmbeddedServer
from rota.stores.postgres.embedded.account import Account
from rota.stores.postgres.embedded.binaries import from_wheel, within_reach
from rota.stores.postgres.embedded.process import Postmaster

T = TypeVar("T")

ROOT = os.geteuid() == 0
NOBODY = pwd.getpwnam("nobody")
NAMELESS = 54321


class Child:
    """A process of ours, forked, and another user if `uid` says so."""

    def __init__(self, work: Callable[[], Any], uid: int | None = None) -> None:
        wheel = None if uid is None or not ROOT else _wheel_for(uid)
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            os.setsid()
            if uid is not None and wheel is not None:
                sys.path.insert(0, wheel)
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            try:
                answer = (True, work())
            except BaseException as error:
                answer = (False, f"{type(error).__name__}: {error}")
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(answer, pipe)
            os._exit(0)
        os.close(writing)
        self._pipe = os.fdopen(reading, "rb")

    def result(self) -> Any:
        with self._pipe:
            done, value = pickle.load(self._pipe)
        os.waitpid(self.pid, 0)
        assert done, value
        return value

    def hurt(self, number: signal.Signals) -> None:
        os.killpg(self.pid, number)
        os.waitpid(self.pid, 0)
        self._pipe.close()


def _wheel_for(uid: int) -> str:
    """Where the wheel is for user `uid`, who may be unable to enter the home that this Python lives in."""
    return str(within_reach(from_wheel(), Account(uid, uid, "another user")).prefix.parents[1])


def in_child(work: Callable[[], T], uid: int | None = None) -> T:
    return Child(work, uid).result()


def as_plain_user(work: Callable[[], T]) -> T:
    return in_child(work, NOBODY.pw_uid)


def ask(url: str, question: str) -> Any:
    with psycopg.connect(url) as connection:
        cursor = connection.execute(question)
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def write_down(url: str) -> None:
    ask(url, "CREATE TABLE note AS SELECT 42 AS written")


def read_back(url: str) -> int:
    return ask(url, "SELECT written FROM note")


def postmaster_of(server: EmbeddedServer) -> int:
    pid = Postmaster(server.data_path.parent).pid()
    assert pid is not None
    return pid


def wait_for_the_end_of(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)


def socket_directory(server: EmbeddedServer) -> Path:
    return Path(ask(server.url(), "SHOW unix_socket_directories"))


def message_of(action: Callable[[], Any], kind: type[RotaError]) -> str:
    with pytest.raises(kind) as caught:
        action()
    return str(caught.value)
