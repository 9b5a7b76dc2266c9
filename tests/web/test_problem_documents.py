"""Whatever goes wrong is one kind of document: what, which value, what to do, and no internals."""

from __future__ import annotations

import logging

import pytest

from rota.errors import SchemaOutdated, StoreUnavailable
from rota.stores.memory import MemoryStore
from web_kit import Site, served


def is_problem(answer, status: int, kind: str) -> bool:
    document = answer.json()
    return (
        answer.status_code == document["status"] == status
        and answer.headers["content-type"] == "application/problem+json"
        and document["type"] == f"urn:rota:{kind}"
        and document["request_id"] == answer.headers["x-request-id"]
        and document["title"] != ""
        and len(document["detail"]) > 20
    )


async def test_an_address_that_is_not_there(memory_site):
    client = await memory_site.client()

    assert is_problem(await client.get("/api/v1/nothing"), 404, "not-found")
    assert is_problem(await client.get("/api/v1/jobs/"), 404, "not-found")


async def test_a_wrong_method_is_told_all_right_ones(memory_site):
    answer = await (await memory_site.client()).put("/api/v1/jobs")

    assert is_problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "GET, POST"


async def test_what_does_not_fit_is_told_by_place_and_without_its_value(memory_site):
    body = {"task": "mail", "options": {"priority": "s3cret"}, "colour": "red"}
    answer = await (await memory_site.client()).post("/api/v1/jobs", json=body)

    assert is_problem(answer, 422, "invalid")
    assert {error["where"] for error in answer.json()["errors"]} == {"body.options.priority", "body.colour"}
    assert "s3cret" not in answer.text


async def test_what_is_not_json_is_told_so(memory_site):
    client = await memory_site.client()
    json = {"content-type": "application/json"}

    assert is_problem(await client.post("/api/v1/jobs", content="{'task'", headers=json), 422, "invalid")
    assert is_problem(await client.post("/api/v1/jobs", content="1" * 5000, headers=json), 400, "refused")
    assert is_problem(
        await client.post("/api/v1/jobs", content='{"task": "mail"}', headers={"content-type": "text/plain"}),
        422,
        "invalid",
    )


async def test_an_id_that_is_none_is_told_so(memory_site):
    answer = await (await memory_site.client()).get("/api/v1/jobs/1234")

    assert is_problem(answer, 422, "invalid")
    assert "'1234' is not a job id" in answer.json()["errors"][0]["what"]


class Broken(MemoryStore):
    """A store that fails as it is told once somebody is let in."""

    error: Exception

    async def find(self, wanted):
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailable("connection to server at 10.1.2.3, port 5432 failed: no password"),
        SchemaOutdated(3, 12),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_store_that_is_away_is_503_and_its_address_is_for_the_log(error, caplog):
    store = Broken()
    store.error = error
    async with served(store) as site:
        answer = await (await site.client()).get("/api/v1/jobs")

    assert is_problem(answer, 503, "store-unavailable")
    assert answer.headers["retry-after"] == "1"
    assert "10.1.2.3" not in answer.text
    assert "schema" not in answer.text
    assert str(error) in caplog.text
    assert answer.json()["request_id"] in caplog.text


async def test_a_part_of_the_statistics_that_cannot_be_read_is_named_and_why_is_for_the_log(
    memory_site, monkeypatch, caplog
):
    async def away(*_: object) -> None:
        raise StoreUnavailable("PostgreSQL at db.internal:5432, database 'shop' refused a statement")

    monkeypatch.setattr(memory_site.store, "figures", away)
    answer = await (await memory_site.client("viewer")).get("/api/v1/statistics")

    assert answer.status_code == 200
    assert answer.json()["unknown"] == {"figures": "could not be read"}
    assert "db.internal" not in answer.text
    assert "db.internal" in caplog.text


async def test_a_store_that_is_away_when_the_token_is_looked_up_is_no_reason_to_let_anybody_in():
    class Away(MemoryStore):
        async def tokens(self, *, token_id=None):
            raise StoreUnavailable("away")

    async with served(Away()) as site:
        answer = await (await site.client()).get("/api/v1/jobs")

    assert is_problem(answer, 503, "store-unavailable")


async def test_an_error_of_ours_is_500_with_its_trace_in_the_log_only(caplog):
    store = Broken()
    store.error = ZeroDivisionError("the secret of the sum")
    async with served(store) as site:
        client = await site.client()
        with caplog.at_level(logging.ERROR, "rota.web"):
            answer = await client.get("/api/v1/jobs")

    assert is_problem(answer, 500, "internal")
    assert "ZeroDivisionError" not in answer.text
    assert "the secret of the sum" not in answer.text
    assert "ZeroDivisionError: the secret of the sum" in caplog.text
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


async def test_the_id_of_a_request_is_the_callers_if_it_can_stand_in_a_log(memory_site):
    client = memory_site.anonymous()

    given = await client.get("/healthz", headers={"x-request-id": "trace-7.a_b"})
    forged = await client.get("/healthz", headers={"x-request-id": "x\ty <script>"})

    assert given.headers["x-request-id"] == "trace-7.a_b"
    assert len(forged.headers["x-request-id"]) == 32


def test_without_its_packages_the_api_says_what_to_install(monkeypatch):
    import sys

    from rota.errors import ConfigError

    for name in [name for name in sys.modules if name.startswith("rota.web.app")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)

    with pytest.raises(ConfigError, match="pip install rota"):
        Site(MemoryStore())


async def test_every_problem_is_described_in_the_openapi(memory_site):
    described = (await (await memory_site.client("viewer")).get("/api/v1/openapi.json")).json()

    assert described["openapi"] == "3.1.0"
    assert "Problem" in described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for operation in methods.values():
            assert "application/problem+json" in operation["responses"]["4XX"]["content"], path
            assert operation["x-rota-role"] in ("anyone", "viewer", "operator", "manager")
            assert bool(operation["security"]) == (operation["x-rota-role"] != "anyone")
