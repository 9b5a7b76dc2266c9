"""Results: stored as JSON by the return type, read back as that type."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pydantic import BaseModel

from rota import PayloadInvalid


class Receipt(BaseModel):
    number: int
    at: datetime


@dataclasses.dataclass
class Sum:
    total: Decimal


@pytest.mark.req("W16")
async def test_a_result_is_what_the_function_returned(app, work):
    @app.task
    async def charge(cents: int) -> Receipt:
        return Receipt(number=cents, at=datetime(2026, 1, 2, tzinfo=UTC))

    handle = await charge.enqueue(700)
    await work(app)

    assert await handle == Receipt(number=700, at=datetime(2026, 1, 2, tzinfo=UTC))


async def test_a_dataclass_comes_back_as_a_dataclass(app, work):
    @app.task
    def add(a: Decimal, b: Decimal) -> Sum:
        return Sum(a + b)

    handle = await add.enqueue(Decimal("0.1"), Decimal("0.2"))
    await work(app)

    assert await handle == Sum(Decimal("0.3"))


async def test_nothing_returned_is_nothing_stored(app, work):
    @app.task
    async def quiet() -> None: ...

    handle = await quiet.enqueue()
    await work(app)

    assert await handle is None
    assert (await handle.refresh()).result_json is None


async def test_without_a_return_type_the_plain_json_comes_back(app, work):
    @app.task
    async def look():
        return {"at": datetime(2026, 1, 2, tzinfo=UTC), "n": [1, 2]}

    handle = await look.enqueue()
    await work(app)

    assert await handle == {"at": "2026-01-02T00:00:00Z", "n": [1, 2]}


async def test_a_return_type_without_json_form_does_no_harm_until_one_is_returned(memory_app):
    class Socket: ...

    @memory_app.task
    def connect() -> Socket | None: ...

    assert connect.dump_result(None) is None
    with pytest.raises(
        PayloadInvalid, match=r"the result of connect cannot be stored as JSON .* Return plain values"
    ):
        connect.dump_result(Socket())


async def test_a_result_that_no_longer_fits_the_return_type_says_so_and_how_to_read_it(app, work):
    @app.task(name="report")
    async def before() -> dict:
        return {"pages": "many"}

    handle = await before.enqueue()
    await work(app)
    del app.tasks["report"]

    @app.task(name="report")
    async def after() -> dict[str, int]: ...

    with pytest.raises(PayloadInvalid) as refused:
        await app.job(handle.id)
    assert (
        "the stored result of report does not fit its return type: pages: Input should be a valid integer"
        in str(refused.value)
    )
    assert "(await handle.refresh()).result" in str(refused.value)


async def test_the_result_of_a_task_that_is_not_known_here_is_plain_json(app, work):
    @app.task
    async def charge() -> Receipt:
        return Receipt(number=1, at=datetime(2026, 1, 2, tzinfo=UTC))

    handle = await charge.enqueue()
    await work(app)
    del app.tasks["charge"]

    assert await app.job(str(handle.id)) == {"number": 1, "at": "2026-01-02T00:00:00Z"}
