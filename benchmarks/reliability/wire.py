"""A plain TCP relay for Redis, beside the PostgreSQL proxy of the chaos tests: it cuts around EXEC, and swallows."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from urllib.parse import urlsplit


class Relay:
    """Listens on a loopback port in a thread of its own."""

    def __init__(self, upstream: str) -> None:
        self._to = urlsplit(upstream)
        self.rule: Callable[[], str | None] = lambda: None
        """Asked for every EXEC (arq commits by it): before, after or None."""
        self.cuts: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._lines: set[_Line] = set()
        self._hole = False
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.url = ""

    def start(self) -> None:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        self.url = f"redis://127.0.0.1:{port}{self._to.path}"

    async def _open(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    def blackhole(self) -> None:
        """From now on nothing arrives, and nobody is told."""
        self._hole = True

    def heal(self) -> None:
        """New connections work again; those of before stay silent for ever."""
        self._hole = False
        for line in list(self._lines):
            line.silent = True

    def stop(self) -> None:
        async def close() -> None:
            self._server.close()
            tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self._hole:
            await asyncio.sleep(0.05)
        line = _Line(self, reader, writer)
        self._lines.add(line)
        try:
            await line.run(self._to.hostname, self._to.port)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._lines.discard(line)
            line.reset()

    @property
    def hole(self) -> bool:
        return self._hole


class _Line:
    """One client's connection."""

    def __init__(self, relay: Relay, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._relay, self._in, self._out = relay, reader, writer
        self.silent = False
        self._cut_at_answer = False

    async def run(self, host: str, port: int) -> None:
        server_in, server_out = await asyncio.open_connection(host, port)
        try:
            ways = [
                asyncio.create_task(self._there(server_out)),
                asyncio.create_task(self._back(server_in)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            server_out.close()

    async def _open_air(self) -> None:
        while self._relay.hole or self.silent:
            await asyncio.sleep(0.05)

    async def _there(self, out: asyncio.StreamWriter) -> None:
        while data := await self._in.read(65_536):
            await self._open_air()
            cut = self._relay.rule() if b"EXEC\r\n" in data.upper() else None
            if cut:
                self._relay.cuts.append(cut)
            if cut == "before":
                return
            self._cut_at_answer = cut == "after"
            out.write(data)
            await out.drain()

    async def _back(self, server_in: asyncio.StreamReader) -> None:
        while data := await server_in.read(65_536):
            await self._open_air()
            if self._cut_at_answer:
                return
            self._out.write(data)
            await self._out.drain()

    def reset(self) -> None:
        """Hang up without a goodbye."""
        channel = self._out.get_extra_info("socket")
        if channel is not None:
            try:
                channel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass
        self._out.transport.abort()


def relay_before(system):
    """A relay before the system's server that understands its commits: the chaos tests' proxy, or the one above."""
    if system.on_redis:
        relay = Relay(system.url)
    else:
        from chaos.proxy import Proxy

        relay = Proxy(system.url, lambda _: None)
    relay.start()
    return relay
