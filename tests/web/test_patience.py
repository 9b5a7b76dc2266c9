"""A server of ours, over real sockets: who only holds a connection loses it, and who is slow does not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress

import pytest

from build import a_job
from rota.stores.memory import MemoryStore
from rota.web import patience
from rota.web.serving import Served, bind
from web_kit import Site, served

QUICK = 0.3
"""Seconds, in place of ten."""
SOON = 10.0
LONG = "ann and bob " * 8_000
"""Words: what has none looks like a secret, and is hidden."""


@pytest.fixture
async def port(monkeypatch) -> AsyncIterator[tuple[Site, int]]:
    """A site, and the port where it answers."""
    monkeypatch.setattr(patience, "HEAD_SECONDS", QUICK)
    monkeypatch.setattr(patience, "STUCK_SECONDS", QUICK)
    async with served(MemoryStore(), pages=True, hosts=None) as site:
        bound = bind("127.0.0.1", 0)
        server = Served(site.asgi, bound)
        await server.start()
        try:
            yield site, bound.getsockname()[1]
        finally:
            await server.stop()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def answered(reader: asyncio.StreamReader) -> str:
    """All that comes until the server closes."""
    async with asyncio.timeout(SOON):
        with suppress(ConnectionResetError):
            return (await reader.read()).decode()
    return ""


def asked(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


@pytest.mark.parametrize(
    "said", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "], ids=["nothing", "a half"]
)
async def test_who_does_not_say_what_he_wants_is_let_go(port, said):
    _, number = port
    async with connected(number) as (reader, writer):
        writer.write(said)

        assert await answered(reader) == ""


async def test_a_byte_now_and_then_holds_no_connection(port):
    _, number = port
    async with connected(number) as (reader, writer):

        async def drip() -> None:
            writer.write(asked("/healthz")[:-2] + b"X: ")
            while True:
                writer.write(b"x")
                await asyncio.sleep(QUICK / 6)

        dripping = asyncio.create_task(drip())
        said = await answered(reader)
        dripping.cancel()

        assert said == ""


async def test_a_half_request_behind_a_whole_one_holds_no_connection(port):
    _, number = port
    async with connected(number) as (reader, writer):
        writer.write(asked("/healthz") + b"GET /heal")

        assert (await answered(reader)).endswith('{"status":"ok"}')


async def test_a_body_that_nobody_wants_is_not_taken_without_end(port):
    _, number = port
    async with connected(number) as (reader, writer):

        async def pour() -> None:
            writer.write(asked("/api/v1/jobs", "Transfer-Encoding: chunked", method="POST"))
            with suppress(OSError):
                while True:
                    writer.write(b"1000\r\n" + b"a" * 4096 + b"\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.01)

        pouring = asyncio.create_task(pour())
        async with asyncio.timeout(SOON):
            head = await reader.readuntil(b"\r\n")
            await asyncio.wait([pouring])

        assert b" 401 " in head


async def test_who_stops_reading_is_let_go_and_so_is_what_was_read_for_him(port):
    site, number = port
    token = await site.token("viewer")
    await site.store.enqueue([a_job("mail", {"to": LONG}) for _ in range(50)])
    streams = asyncio.all_tasks()
    with closing(socket.socket()) as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await asyncio.to_thread(stuck.connect, ("127.0.0.1", number))
        stuck.sendall(asked("/jobs/export.json", f"Authorization: Bearer {token}"))
        await asyncio.sleep(QUICK)
        assert any("RequestResponseCycle" in repr(task) for task in asyncio.all_tasks() - streams)
        async with asyncio.timeout(SOON):
            while any("RequestResponseCycle" in repr(task) for task in asyncio.all_tasks()):
                await asyncio.sleep(0.02)


async def test_who_reads_slowly_gets_all_of_it(port, monkeypatch):
    monkeypatch.setattr(patience, "STUCK_SECONDS", SOON)
    site, number = port
    token = await site.token("viewer")
    await site.store.enqueue([a_job("mail", {"to": LONG}) for _ in range(5)])
    async with connected(number) as (reader, writer):
        writer.write(asked("/jobs/export.json", f"Authorization: Bearer {token}", "Connection: close"))
        said = b""
        async with asyncio.timeout(2 * SOON):
            while piece := await reader.read(16_384):
                said += piece
                await asyncio.sleep(0.02)

    assert said.count(LONG.encode()) == 5
    assert b'"note": null' in said


async def test_an_answer_that_takes_long_is_waited_for(port, monkeypatch):
    site, number = port
    token = await site.token("viewer")
    find = site.store.find

    async def slowly(wanted):
        await asyncio.sleep(3 * QUICK)
        return await find(wanted)

    monkeypatch.setattr(site.store, "find", slowly)
    async with connected(number) as (reader, writer):
        writer.write(asked("/api/v1/jobs", f"Authorization: Bearer {token}", "Connection: close"))

        assert " 200 OK" in (await answered(reader)).splitlines()[0]


async def test_a_hundred_megabytes_without_a_length_are_refused_after_the_first(port):
    site, number = port
    token = await site.token("operator")
    sent = 0
    async with connected(number) as (reader, writer):
        writer.write(
            asked(
                "/api/v1/jobs",
                f"Authorization: Bearer {token}",
                "Content-Type: application/json",
                "Transfer-Encoding: chunked",
                method="POST",
            )
        )
        answer = asyncio.create_task(reader.readuntil(b"\r\n"))
        while sent < 100 * 2**20 and not answer.done():
            writer.write(b"10000\r\n" + b"a" * 65_536 + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)
            sent += 65_536

        assert b" 413 " in await answer
        assert sent < 20 * 2**20  # what stands in the sockets between us
