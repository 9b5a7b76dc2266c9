"""Mistakes that a type checker must find: each line that ends in `# wrong`, and no other. Never run."""

from __future__ import annotations

from collections.abc import AsyncIterator

from rota import Rota

app = Rota()


@app.task
async def send(to: str, times: int = 1) -> int:
    return times


@app.task(queue="fast")
def plain(number: int) -> str:
    return str(number)


@app.resource
async def database() -> AsyncIterator[int]:
    yield 1


async def use() -> None:
    await send()  # wrong
    await send.enqueue()  # wrong
    await send.enqueue(7)  # wrong
    await send.enqueue("a", times="many")  # wrong
    await send.enqueue("a", tmes=2)  # wrong
    await send.enqueue("a", 2, 3)  # wrong
    await send.using(queue="q").enqueue(7)  # wrong
    await send.using(que="q").enqueue("a")  # wrong
    await send.using(priority="high").enqueue("a")  # wrong
    await plain.enqueue("a")  # wrong
    text: str = await (await send.enqueue("a"))  # wrong
    number: int = await (await plain.enqueue(1))  # wrong
    value: str = database()  # wrong
    await app.enqueue(send)  # wrong
    await app.enqueue("send", {"to": "a"}, prio=3)  # wrong
    print(text, number, value)


def use_without_async() -> None:
    plain.enqueue_sync("a")  # wrong
    send.using(queue="q").enqueue_sync(to=7)  # wrong
    result: int = plain.enqueue_sync(1).result_sync()  # wrong
    plain("a")  # wrong
    print(result)


@app.task(queue=7)  # wrong
def misplaced() -> None: ...


@app.task(quue="fast")  # wrong
def misspelt() -> None: ...


app.schedule("@daily")(send)  # wrong
app.schedule("@daily")(send, 7)  # wrong
app.schedule("@daily")(plain, number="7")  # wrong
app.schedule("@daily")(send.using(queue="q"), "a", tmes=2)  # wrong
app.schedule("@daily", misfire="some")(plain, 7)  # wrong
app.schedule(5)(plain, 7)  # wrong
