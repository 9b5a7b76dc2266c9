"""A proxy that understands PostgreSQL's frames, and can cut a connection on either edge of a commit.

A client in autocommit mode commits with the Sync (or the simple Query) that
ends its statement, one in a transaction with its COMMIT. Cut BEFORE: the server
never gets that frame. Cut AFTER: the server has carried it out, and its answer
is thrown away. Cut DURING: the server has got it, and nobody knows how far it is.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
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
        self._loop = asyncio.new_event_loop()
        self._lines: set[asyncio.Task[None]] = set()
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

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        try:
            await Line(self, reader, writer).run()
        except asyncio.CancelledError:
            pass  # the proxy stops
        finally:
            self._lines.discard(task)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        lines = list(self._lines)
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)
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

    async def run(self) -> None:
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
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._reset()
            self._server_out.close()  # politely: what was sent still arrives
            with suppress(OSError):
                await self._server_out.wait_closed()

    async def _greet(self) -> None:
        """The first message has no type; TLS and cancels are not for us."""
        head = await self._client_in.readexactly(4)
        self._server_out.write(head + await self._client_in.readexactly(struct.unpack("!i", head)[0] - 4))

    async def _there(self) -> None:
        async for kind, frame in _frames(self._client_in):
            self._note(kind, frame)
            cut = self._proxy.judge(self._words()) if self._commits(kind) else None
            if cut is Cut.BEFORE:
                await self._server_out.drain()
                return
            self._mute = cut is Cut.AFTER
            self._server_out.write(frame)
            await self._server_out.drain()
            if cut is Cut.DURING:
                return

    async def _back(self) -> None:
        async for kind, frame in _frames(self._server_in):
            if kind == b"Z":
                self._status = frame[5:6]
                if self._mute:
                    await asyncio.to_thread(self._proxy.meanwhile)
                    return
                if self._status == IDLE:
                    self._transaction.clear()
                self._statement.clear()
            if not self._mute:
                self._client_out.write(frame)
                await self._client_out.drain()

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
