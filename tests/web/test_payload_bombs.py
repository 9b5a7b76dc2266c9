"""Bodies that are made to cost much or to mean two things: refused quickly, or taken as one thing by everybody."""

from __future__ import annotations

import gzip
from time import perf_counter

import pytest

from web_kit import served

JSON = {"content-type": "application/json"}
JOBS = "/api/v1/jobs"
KEYS = ",".join(f'"{number}":0' for number in range(90_000))
"""About as many keys as a body has room for; a million of them are too large."""
MANY = ",".join(f'"{number}":0' for number in range(1_000_000))


def ordering(argument: str) -> str:
    return f'{{"task": "mail", "args": {{"to": {argument}}}}}'


BOMBS = {
    "a million keys": (f'{{"task": "mail", "args": {{{MANY}}}}}', 413),
    "as many keys as fit": (f'{{"task": "mail", "args": {{{KEYS}}}}}', 422),
    "many keys where one text is meant": (ordering(f"{{{KEYS}}}"), 422),
    "a list of lists": (ordering("[" + "[]," * 300_000 + "[]]"), 422),
    "a hundred thousand levels": (ordering("[" * 100_000 + "]" * 100_000), 422),
    "levels that never end": ('{"a":' * 150_000, 422),
    "an integer of 5,000 digits": (ordering("9" * 5_000), 400),
    "a million digits": (ordering("9" * 1_000_000), 400),
    "a number beyond all floats": (ordering("1e999"), 422),
    "an exponent without end": (ordering("1e" + "9" * 100_000), 422),
    "a NUL in a name": ('{"task": "mail", "args": {"to\\u0000": 1}}', 422),
    "half a character in a name": ('{"task": "mail", "args": {"\\ud800": 1}}', 422),
    "a mark before the text": ("\ufeff" + ordering('"ann"'), 400),
    "nothing": ("", 422),
    "blanks": (" " * 1_000_000, 422),
}


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_is_refused_and_soon(memory_site, name):
    body, status = BOMBS[name]
    client = await memory_site.client("operator")
    began = perf_counter()
    answer = await client.post(JOBS, content=body.encode(), headers=JSON)
    took = perf_counter() - began

    assert answer.status_code == status, answer.text[:500]
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 5_000  # it is not sent back
    assert took < 10.0  # a second on a machine that does nothing else
    assert (await client.get(JOBS)).json()["items"] == []


@pytest.mark.parametrize("name", BOMBS)
async def test_an_edit_is_no_way_around(memory_site, name):
    body, status = BOMBS[name]
    client = await memory_site.client("operator")
    made = await client.post(JOBS, json={"task": "mail", "args": {"to": "ann"}})
    answer = await client.patch(made.json()["url"], content=body.encode(), headers=JSON)

    assert 400 <= answer.status_code < 500, answer.text[:500]
    assert status in (answer.status_code, 422)
    assert (await client.get(made.json()["url"])).json()["payload"] == {"to": "ann"}


async def test_of_a_name_that_stands_twice_everybody_takes_the_last(store):
    body = (
        '{"task": "report", "task": "mail", "args": {"month": 1}, '
        '"args": {"to": 7, "to": "\\u0000", "to": "ann"}, "options": {"queue": "a", "queue": "b"}}'
    )
    async with served(store) as site:
        client = await site.client("operator")
        made = await client.post(JOBS, content=body, headers=JSON)
        job = (await client.get(made.json()["url"])).json()

    assert (made.status_code, job["task"], job["queue"], job["payload"]) == (201, "mail", "b", {"to": "ann"})


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "GZIP", "identity, gzip", "x-gzip"])
async def test_a_compressed_body_is_neither_opened_nor_taken(memory_site, encoding):
    bomb = gzip.compress(b'{"task": "mail", "args": {"to": "' + b"a" * 50_000_000 + b'"}}', compresslevel=1)
    client = await memory_site.client("operator")
    answer = await client.post(JOBS, content=bomb, headers=JSON | {"content-encoding": encoding})

    assert (answer.status_code, answer.json()["type"]) == (415, "urn:rota:encoded-body")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
@pytest.mark.parametrize("hidden", ["a\\u0000b", "NaN", "\\ud800"])
async def test_no_other_encoding_hides_what_would_be_refused(memory_site, encoding, hidden):
    client = await memory_site.client("operator")
    made = await client.post(JOBS, json={"task": "mail", "args": {"to": "ann"}})
    body = f'{{"reason": "{hidden}"}}'.encode(encoding)
    answer = await client.post(f"{made.json()['url']}/hold", content=body, headers=JSON)

    assert (answer.status_code, answer.json()["type"]) == (400, "urn:rota:not-utf-8")
    assert (await client.get(made.json()["url"])).json()["label"] == "pending"


@pytest.mark.parametrize("length", ["9" * 5_000, "\xb2", "-1", "1e3", " "])
async def test_a_length_that_is_none_breaks_nothing(memory_site, length):
    client = await memory_site.client("operator")
    headers = {"content-type": "application/json", "content-length": length.encode("latin-1")}
    answer = await client.post(JOBS, content=ordering('"ann"'), headers=headers)

    assert answer.status_code in (201, 413)


async def test_names_that_look_alike_are_not_the_same(store):
    async with served(store) as site:
        client = await site.client("operator", "red")
        wrong = await client.post(JOBS, json={"task": "m\u0430il", "args": {"to": "ann"}})  # a Cyrillic a
        other = await site.client("viewer", "r\u0435d")
        made = await client.post(JOBS, json={"task": "mail", "args": {"to": "ann"}})

        assert (wrong.status_code, wrong.json()["type"]) == (422, "urn:rota:unknown-task")
        assert (await other.get(made.json()["url"])).status_code == 404
        assert (await other.get(JOBS)).json()["items"] == []
