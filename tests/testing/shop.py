"""A small shop with good and bad tasks, as the tests of the test kit find it in a project."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from rota import Cancel, Die, Retry, RetryAfter, Rota, Snooze, current_job


class Bank:
    """An outside system, which knows a repeated request by its key."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.charges: list[int] = []
        self.keys: set[str] = set()
        self.locked = False

    def charge(self, cents: int, key: str | None = None) -> None:
        if key is None or key not in self.keys:
            self.charges.append(cents)
        if key is not None:
            self.keys.add(key)

    def lock(self) -> None:
        if self.locked:
            raise RuntimeError("somebody else has the lock")
        self.locked = True

    def unlock(self) -> None:
        self.locked = False


@dataclass
class Address:
    street: str
    city: str


bank = Bank()
app = Rota()


def pay(cents: int) -> None:
    bank.charge(cents, current_job().effect_key)


@app.task(queue="mail")
async def send_email(to: str, template: str = "welcome", copies: int = 1) -> str:
    return f"{template} to {to}"


@app.task
def ship(address: Address, day: date, weight: Decimal = Decimal("1.5")) -> None: ...


@app.task(retry=Retry(attempts=3))
async def flaky(fails: int) -> int:
    if current_job().attempt <= fails:
        raise ConnectionError("the line is down")
    return current_job().attempt


@app.task(retry=Retry(attempts=2))
def broken() -> None:
    raise ValueError("no such order")


@app.task
async def moody(mood: str) -> None:
    if mood == "snooze" and not current_job().job.snoozes:
        raise Snooze("5m", "not ready")
    if mood == "cancel":
        raise Cancel("not needed")
    if mood == "die":
        raise Die("never")
    if mood == "later" and current_job().attempt == 1:
        raise RetryAfter("10m")


@app.task
async def sign_up(name: str) -> None:
    await send_email.enqueue(f"{name}@example.org")


@app.task
def sign_up_in_a_thread(name: str) -> None:
    send_email.enqueue_sync(f"{name}@example.org")


@app.task
async def breaks_a_child() -> str:
    await broken.enqueue()
    return "the child is not my business"


@app.task
async def endless() -> None:
    await endless.enqueue()


@app.task
async def waits_for_another() -> str:
    handle = await send_email.enqueue("ann@example.org")
    return await handle


@app.task
async def waits_for_ever() -> None:
    await asyncio.Event().wait()


@app.task
async def charge_by_key(cents: int) -> None:
    await asyncio.sleep(0)
    bank.charge(cents, current_job().effect_key)
    await asyncio.sleep(0)


@app.task
async def charge_blindly(cents: int) -> None:
    bank.charge(cents)
    await asyncio.sleep(0)


@app.task
def charge_each_by_key(times: int) -> None:
    for number in range(times):
        bank.charge(number, current_job().effect_key_for(str(number)))


@app.task
def charge_each_blindly(times: int) -> None:
    for number in range(times):
        bank.charge(number)


@app.task
def charge_through_a_function(cents: int) -> None:
    pay(cents)


@app.task
async def charge_and_refund(cents: int) -> None:
    try:
        bank.charge(cents, current_job().effect_key)
        await asyncio.sleep(0)
    except BaseException:
        bank.charge(-cents)
        raise


@app.task(retry=Retry(attempts=3))
async def charge_under_lock(cents: int) -> None:
    bank.lock()
    try:
        bank.charge(cents, current_job().effect_key)
    finally:
        bank.unlock()


@contextmanager
def locked():
    bank.lock()
    try:
        yield
    finally:
        bank.unlock()


@asynccontextmanager
async def locked_async():
    bank.lock()
    try:
        await asyncio.sleep(0)
        yield
    finally:
        bank.unlock()


@app.task(retry=Retry(attempts=3))
def charge_in_a_with(cents: int) -> None:
    with locked():
        bank.charge(cents, current_job().effect_key)


@app.task(retry=Retry(attempts=3))
async def charge_in_an_async_with(cents: int) -> None:
    async with locked_async():
        bank.charge(cents, current_job().effect_key)


@app.task(retry=Retry(lost=False))
async def charge_once_at_most(cents: int) -> None:
    bank.charge(cents)
    await asyncio.sleep(0)


@app.task(retry=Retry(attempts=1))
async def charge_in_one_attempt(cents: int) -> None:
    bank.charge(cents, current_job().effect_key)


@app.task
async def invite_twice(name: str) -> None:
    await send_email.enqueue(f"{name}@example.org")
    await asyncio.sleep(0)


@app.task
async def invite_once(name: str) -> None:
    once = send_email.using(key=current_job().effect_key_for("invite"))
    await once.enqueue(f"{name}@example.org")
    await asyncio.sleep(0)
