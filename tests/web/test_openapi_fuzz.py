"""The OpenAPI document is held to its word by schemathesis: whatever is sent, by whomever, the answer is as promised.

Every operation gets values that fit its schema, on things that exist, and values that do not. Each case is sent by
everybody: a viewer, an operator, a manager, an operator of one tenant, and nobody. The cases are the same in every run.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import httpx
import psycopg
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from psycopg import sql
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rota.stores.memory import MemoryStore
from rota.stores.postgres import PostgresStore
from rota.web import Role
from servers import with_database
from web_kit import Site
from web_routes import EXAMPLES, Stage

T = TypeVar("T")
TENANT = "red"
CASES = 10
"""Of each kind, for each operation."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
ENDLESS = {"events_follow"}
"""Answers that do not end by themselves; test_events_stream.py has them."""


def document() -> Any:
    config = SchemathesisConfig.from_dict({"generation": {"with-security-parameters": False}})
    return schemathesis.openapi.from_dict(Site(MemoryStore()).asgi.openapi(), config=config)


OPERATIONS = {
    operation.definition.raw["operationId"]: operation
    for found in document().get_all_operations()
    for operation in [found.ok()]
    if operation.definition.raw["operationId"] not in ENDLESS
}


class Caller(NamedTuple):
    """One of those who ask."""

    name: str
    role: Role | None
    client: httpx.AsyncClient

    def may(self, operation: Any) -> bool:
        needed = operation.definition.raw["x-rota-role"]
        return needed == "anyone" or (self.role is not None and self.role.allows(Role(needed)))


class Desk:
    """The API on a PostgreSQL of its own, asked from outside its event loop."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="asked")
        self._thread.start()
        self.site = Site(PostgresStore(url), rate=1e6, burst=10**6)
        self.stage = Stage(self.site.store)
        self.callers = self.run(self._callers())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)

    async def _callers(self) -> list[Caller]:
        known = [(role.value, role, None) for role in Role] + [
            (f"operator of {TENANT}", Role.OPERATOR, TENANT)
        ]
        return [
            *[Caller(name, role, await self.site.client(role, tenant)) for name, role, tenant in known],
            Caller("nobody", None, self.site.anonymous()),
        ]

    async def places(self, verb: str) -> list[dict[str, str]]:
        """What the path of an operation can name: two things of nobody's, one of the tenant's."""
        example = EXAMPLES.get(verb)
        if example is None or example.path is None:
            return []
        return [await example.path(self.stage, tenant) for tenant in (None, TENANT, None)]

    async def ask(self, case: Any) -> list[tuple[Caller, httpx.Response]]:
        """What each answers to the same request."""
        asked = case.as_transport_kwargs(base_url=str(self.callers[0].client.base_url))
        asked.pop("cookies", None)
        content = asked.pop("data", None)
        if isinstance(content, bytes | str):
            asked["content"] = content
        elif content is not None:
            asked["data"] = content
        answers = []
        for caller in self.callers:
            headers = httpx.Headers([(name, value) for name, value in (asked.get("headers") or {}).items()])
            headers.pop("authorization", None)
            request = caller.client.build_request(**(asked | {"headers": headers}))
            answers.append((caller, await caller.client.send(request)))
        return answers

    async def _close(self) -> None:
        if self.site.asgi.state._state.get("drivers") is not None:
            await self.site.asgi.state.drivers.idle()
        await self.site.close()
        await self.site.store.close()

    def close(self) -> None:
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def desk(cluster: str, administrator: psycopg.Connection, template: str) -> Iterator[Desk]:
    """One for all operations: what one of them breaks, the others meet."""
    name = f"fuzz_{uuid4().hex[:12]}"
    administrator.execute(
        sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    )
    desk = Desk(with_database(cluster, name))
    yield desk
    desk.close()
    administrator.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def holds(case: Any, caller: Caller, answer: httpx.Response, *, checks: list[Any]) -> None:
    """The document's promises, and ours about errors and about who may ask."""
    case.validate_response(answer, checks=checks)
    if answer.is_success:
        assert caller.may(case.operation), f"{caller.name} got {answer.status_code}"
        return
    assert answer.headers["content-type"].partition(";")[0] == "application/problem+json"
    problem = answer.json()
    assert problem.keys() >= {"type", "title", "status", "detail", "request_id"}
    assert problem["status"] == answer.status_code
    assert problem["type"].startswith("urn:rota:")
    assert problem["detail"].strip()
    if not caller.may(case.operation) and answer.status_code not in (400, 404, 405, 413, 415):
        assert answer.status_code == (401 if caller.role is None else 403), answer.text


def tried(strategy: Any) -> Any:
    """The same cases in every run, and no time lost on making failures small."""
    chosen = settings(
        max_examples=CASES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    return lambda check: chosen(given(strategy)(check))()


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_fits_the_document_is_answered_as_it_says(name, desk):
    operation = OPERATIONS[name]
    places = desk.run(desk.places(operation.definition.raw["x-rota-verb"]))
    turn, served = iter(range(10**6)), set()

    @tried(operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE))
    def check(case: Any) -> None:
        number = next(turn)
        if places and number % 4:  # one in four asks for what is not there
            case.path_parameters = dict(places[number % len(places)])
        for caller, answer in desk.run(desk.ask(case)):
            holds(case, caller, answer, checks=CHECKS)
            if answer.is_success:
                served.add(caller.name)

    # Cases that nobody gets an answer to would prove little.
    assert operation.method.upper() != "GET" or "manager" in served


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_does_not_fit_the_document_is_refused_in_its_words(name, desk):
    operation = OPERATIONS[name]

    def check(case: Any) -> None:
        for caller, answer in desk.run(desk.ask(case)):
            more = [negative_data_rejection] if caller.may(operation) else []
            holds(case, caller, answer, checks=CHECKS + more)

    wrong = operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
    with suppress(Unsatisfiable):  # where any text fits, nothing can be wrong
        tried(wrong)(check)
