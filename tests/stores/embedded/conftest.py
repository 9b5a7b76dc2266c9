"""Places for embedded servers; whatever runs in them is destroyed in the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from embedded_stage import NOBODY, ROOT

from rota.stores.postgres.embedded import EmbeddedServer


@pytest.fixture
def room() -> Iterator[Path]:
    """A directory that every user may enter; servers in it are destroyed in the end."""
    path = Path(tempfile.mkdtemp(prefix="rota-test-")).resolve()
    path.chmod(0o755)
    yield path
    for marker in list(path.rglob("embedded.json")):
        EmbeddedServer(marker.parent).destroy()
    shutil.rmtree(path)


@pytest.fixture
def plain_room(room: Path) -> Path:
    """The same, owned by the plain user."""
    if ROOT:
        os.chown(room, NOBODY.pw_uid, NOBODY.pw_gid)
    return room


@pytest.fixture
def plain_server(server: EmbeddedServer) -> EmbeddedServer:
    """Made, not running, and wholly owned by the plain user."""
    if ROOT:
        subprocess.run(["chown", "-R", f"{NOBODY.pw_uid}:{NOBODY.pw_gid}", server.path.parent], check=True)
    return server


@pytest.fixture
def fresh(room: Path) -> EmbeddedServer:
    """Not made yet."""
    return EmbeddedServer(room / "project" / ".rota")


@pytest.fixture(scope="session")
def made() -> Iterator[Path]:
    """One that was made and stopped, to be copied: cheaper than making one for each test."""
    with _made_for_all() as server:
        server.stop()
        yield server.path


@pytest.fixture(scope="session")
def running() -> Iterator[EmbeddedServer]:
    """One that runs, for tests that only look at it."""
    with _made_for_all() as server:
        yield server


@contextmanager
def _made_for_all() -> Iterator[EmbeddedServer]:
    path = Path(tempfile.mkdtemp(prefix="rota-test-")).resolve()
    path.chmod(0o755)
    server = EmbeddedServer(path / ".rota")
    server.start()
    yield server
    server.destroy()
    path.rmdir()


@pytest.fixture
def server(room: Path, made: Path) -> EmbeddedServer:
    """Made, not running."""
    (room / "project").mkdir()
    subprocess.run(["cp", "-a", "--sparse=always", made, room / "project"], check=True)
    return EmbeddedServer(room / "project" / ".rota")
