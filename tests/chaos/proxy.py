"""A proxy that understands PostgreSQL's frames: it cuts a connection on either edge of a commit, and makes weather.

A client in autocommit mode commits with the Sync (or the simple Query) that
ends its statement, one in a transaction with its COMMIT. Cut BEFORE: the server
never gets that frame. Cut AFTER: the server has carried it out, and its answer
is thrown away. Cut DURING: the server has got it, and nobody knows how far it is.

Weather is what a bad network does without cutting: `blackhole()` swallows
everything and says nothing, `silence(word)` does so to one connection, `slow`
delays each question and each answer, `drip` lets bytes through a few at a time.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qs, urlsplit

IDLE = b"I"


class Cut(Enum):
    """Where to cut."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


class Commit(NamedTuple):
    """Something that is about to become durable: every statement that belongs to it, in order."""

    number: int
    """Counts the commits of all connections."""
    sql: str


class Cutter:
    """A rule that cuts, once, the first commit that has a word in it."""

    def __init__(self, word: str, cut: Cut) -> None:
        self.word, self.cut, self.done = word, cut, False

    def __call__(self, commit: Commit) -> Cut | None:
        if self.done or self.word not in commit.sql:
            return None
        self.done = True
        return self.cut


Rule: TypeAlias = Callable[[Commit], Cut | None]


class Proxy:
    """Listens on a loopback port, in a thread of its own. `rule` decides about every commit that passes."""

    def __init__(self, upstream: str, rule: Rule) -> None:
        self._upstream, self.rule = upstream, rule
        self.cuts: list[tuple[Cut, str]] = []
        """What was cut so far, and where."""
        self.meanwhile: Callable[[], None] = lambda: None
        """Called after a commit whose answer is thrown away, before the client hears that its line is dead."""
        self.number = 0
        self.url = ""
        """The address to connect to instead, once it has started."""
        self.slow: Callable[[], float] = lambda: 0.0
        """Seconds that a question or an answer waits; asked anew for each."""
        self.deaf_to = ""
        """A connection that says this goes silent for ever at that moment."""
        self.drip = 0
        """How many bytes pass at a time; 0: as many as there are."""
        self.hole = asyncio.Event()
        """Cleared while everything vanishes."""
        self.hole.set()
        self._loop = asyncio.new_event_loop()
        self._lines: dict[asyncio.Task[None], Line] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="chaos-proxy")
        self._server: asyncio.Server | None = None

    def start(self) -> None:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        user, name = urlsplit(self._upstream).username, urlsplit(self._upstream).path
        self.url = f"postgresql://{user}@127.0.0.1:{port}{name}?sslmode=disable&gssencmode=disable"

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def repoint(self, upstream: str) -> None:
        """Lead new connections to another server."""
        self._upstream = upstream

    def blackhole(self) -> None:
        """From now on nothing arrives, on old and new connections; nobody is told."""
        self._do(self.hole.clear)

    def heal(self) -> None:
        """New connections work again. Those of before stay silent for ever, as behind a firewall that forgot them."""

        def heal() -> None:
            for line in self._lines.values():
                line.forget()
            self.hole.set()

        self._do(heal)

    @contextmanager
    def vanished(self) -> Iterator[None]:
        """A blackhole, and healed in the end."""
        self.blackhole()
        try:
            yield
        finally:
            self.heal()

    def silence(self, word: str) -> int:
        """Half-open: connections that ever said `word` go silent for ever; how many those are."""
        found: list[Line] = []

        def silence() -> None:
            found.extend(line for line in self._lines.values() if word in line.ever)
            for line in found:
                line.forget()

        self._do(silence)
        return len(found)

    def heard(self, word: str) -> bool:
        """Whether somebody has said `word` on a connection that is still there."""
        return any(word in line.ever for line in list(self._lines.values()))

    def _do(self, call: Callable[[], None]) -> None:
        async def done() -> None:
            call()

        asyncio.run_coroutine_threadsafe(done(), self._loop).result()

    def judge(self, sql: str) -> Cut | None:
        """What to do about the commit that comes now."""
        self.number += 1
        cut = self.rule(Commit(self.number, sql))
        if cut is not None:
            self.cuts.append((cut, sql))
        return cut

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self._upstream)
        query = parse_qs(parts.query)
        if "host" in query:
            socket_name = f"{query['host'][0]}/.s.PGSQL.{query.get('port', ['5432'])[0]}"
            return await asyncio.open_unix_connection(socket_name)
        return await asyncio.open_connection(parts.hostname, parts.port or 5432)

    async def _open(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(self, reader, writer)
        task = self._loop.create_task(line.run())
        self._lines[task] = line
        # Whatever it was doing when the proxy stops, and if it had not even begun, it leaves nothing open.
        task.add_done_callback(lambda _: self._lines.pop(task).hang_up())

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        # Also those whom the server let in a moment ago: their line begins only now.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for line in list(self._lines):
                line.cancel()
            await asyncio.wait(others, timeout=0.1)
        await asyncio.sleep(0)  # a transport that was aborted is closed with the next turn
        await self._server.wait_closed()


class Line:
    """One client's connection through the proxy."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy, self._client_in, self._client_out = proxy, reader, writer
        self._statement: list[str] = []
        """What was said since the last Sync."""
        self._transaction: list[str] = []
        """What was said since BEGIN."""
        self._prepared: dict[bytes, str] = {}
        self._status = IDLE
        self._mute = False
        """Answers are thrown away: the cut comes when the server is ready again."""
        self.ever = ""
        """Every statement that was said on it."""
        self._server_out: asyncio.StreamWriter | None = None
        self._heard = asyncio.Event()
        """Cleared once it is silent for ever."""
        self._heard.set()

    def forget(self) -> None:
        """Say nothing more to the client; the server sees it go. Who is not through yet will be let through."""
        if self._server_out is not None:
            self._heard.clear()
            self._server_out.close()

    def hang_up(self) -> None:
        """Be sure that both sides are closed."""
        self._reset()
        if self._server_out is not None:
            self._server_out.transport.abort()

    async def run(self) -> None:
        await self._proxy.hole.wait()
        try:
            self._server_in, self._server_out = await self._proxy.connect()
        except OSError:  # the server is down
            self._reset()
            return
        try:
            await self._greet()
            ways = [asyncio.create_task(self._there()), asyncio.create_task(self._back())]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                await self._proxy.hole.wait()
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
            while not self._heard.is_set() and await self._client_in.read(65_536):
                pass  # what the client still says vanishes; it hears nothing, until it hangs up itself
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._reset()
            self._server_out.close()  # politely: what was sent still arrives
            with suppress(OSError):
                await self._server_out.wait_closed()

    async def _greet(self) -> None:
        """The first message has no type; TLS and cancels are not for us."""
        assert self._server_out is not None
        head = await self._client_in.readexactly(4)
        self._server_out.write(head + await self._client_in.readexactly(struct.unpack("!i", head)[0] - 4))

    async def _there(self) -> None:
        assert self._server_out is not None
        async for kind, frame in _frames(self._client_in):
            self._note(kind, frame)
            if self._proxy.deaf_to and self._proxy.deaf_to in self.ever:
                self.forget()
            await self._weather(kind in (b"Q", b"S"))
            cut = self._proxy.judge(self._words()) if self._commits(kind) else None
            if cut is Cut.BEFORE:
                await self._server_out.drain()
                return
            self._mute = cut is Cut.AFTER
            await self._pass_on(self._server_out, frame)
            if cut is Cut.DURING:
                return

    async def _back(self) -> None:
        async for kind, frame in _frames(self._server_in):
            await self._weather(kind in (b"Z", b"A"))
            if kind == b"Z":
                self._status = frame[5:6]
                if self._mute:
                    await asyncio.to_thread(self._proxy.meanwhile)
                    return
                if self._status == IDLE:
                    self._transaction.clear()
                self._statement.clear()
            if not self._mute:
                await self._pass_on(self._client_out, frame)

    async def _weather(self, whole: bool) -> None:
        """What a frame meets on its way; `whole`: it completes a question or an answer."""
        if whole and (seconds := self._proxy.slow()) > 0:
            await asyncio.sleep(seconds)
        await self._proxy.hole.wait()
        await self._heard.wait()

    async def _pass_on(self, out: asyncio.StreamWriter, frame: bytes) -> None:
        drip = self._proxy.drip
        if not drip:
            out.write(frame)
            await out.drain()
            return
        for start in range(0, len(frame), drip):
            out.write(frame[start : start + drip])
            await out.drain()
            await asyncio.sleep(0)

    def _note(self, kind: bytes, frame: bytes) -> None:
        """Remember which statement a frame is about."""
        body = frame[5:]
        if kind == b"Q":
            self._say(_text(body))
        elif kind == b"P":
            name, _, rest = body.partition(b"\0")
            self._prepared[name] = _text(rest)
        elif kind == b"B":
            name = body.split(b"\0", 2)[1]
            self._say(self._prepared.get(name, ""))

    def _say(self, sql: str) -> None:
        self._statement.append(sql)
        self._transaction.append(sql)
        self.ever = f"{self.ever}\n{sql}"[-4000:]

    def _words(self) -> str:
        return "\n".join(self._transaction)

    def _commits(self, kind: bytes) -> bool:
        """Whether this frame makes durable what was said, if the server carries it out."""
        if kind not in (b"Q", b"S") or not self._statement:
            return False
        first = self._statement[-1].lstrip().upper()
        if self._status == IDLE:
            return not first.startswith(("BEGIN", "LISTEN", "SET"))
        return first.startswith("COMMIT")

    def _reset(self) -> None:
        """Hang up without a goodbye, as a broken network does."""
        channel = self._client_out.get_extra_info("socket")
        if channel is not None:
            with suppress(OSError):
                channel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._client_out.transport.abort()


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, bytes]]:
    """Frames until the other side hangs up."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readexactly(5)
            (length,) = struct.unpack("!i", head[1:])
            yield head[:1], head + await reader.readexactly(length - 4)


def _text(body: bytes) -> str:
    return body.split(b"\0", 1)[0].decode(errors="replace")
