"""Where the server is: always the same, but of an embedded one, which may have died and been started again."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

PAUSE = 0.02


class Address:
    """The address of one store's server, for all who connect to it.

    `find` says where the server is now, and may take long about it: who owns the
    server may start it again there. None: it is not to be found.
    """

    def __init__(self, url: str, find: Callable[[], str | None] | None = None) -> None:
        self.url = url
        self._find = find
        self._lock = threading.Lock()
        self._search: threading.Thread | None = None

    def now(self) -> str:
        return self.url

    async def renew(self, within: float) -> None:
        """Look for the server again, and wait for the answer for so many seconds at most.

        One look at a time, in a thread that keeps nobody from leaving.
        """
        if self._find is None:
            return
        with self._lock:
            if self._search is None or not self._search.is_alive():
                self._search = threading.Thread(target=self._look, name="rota-find-server", daemon=True)
                self._search.start()
            search = self._search
        until = time.monotonic() + within
        while search.is_alive():
            if time.monotonic() >= until:
                return
            await asyncio.sleep(PAUSE)

    def _look(self) -> None:
        assert self._find is not None
        self.url = self._find() or self.url
