"""A PostgreSQL for a test run: started when the first test needs it, gone when the run ends."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
from pathlib import Path

_lock = threading.Lock()
_url: str | None = None


def server_url() -> str:
    """The address of this process's own server; the first call starts it, which takes a second or two."""
    global _url  # noqa: PLW0603 - one a process is the point
    with _lock:
        if _url is None:
            from rota.stores.postgres.embedded import EmbeddedServer

            place = Path(tempfile.mkdtemp(prefix="rota-testing-"))
            server = EmbeddedServer(place)
            atexit.register(_gone, server, place)
            _url = server.start()
        return _url


def _gone(server: object, place: Path) -> None:
    try:
        server.destroy()  # type: ignore[attr-defined]
    finally:
        shutil.rmtree(place, ignore_errors=True)
