"""The link from a job to its trace: there where the job was traced and somebody said where traces are."""

from __future__ import annotations

import json

import pytest
from opentelemetry.sdk.trace import TracerProvider

from build import a_job
from page_kit import paged, words
from rota import Rota
from rota._core.ids import public_id
from rota._core.trace_link import checked_trace_url, trace_id, trace_link
from rota.config import Settings
from rota.contrib.otel import instrument
from rota.errors import ConfigError
from rota.stores.memory import MemoryStore
from rota.web import dashboard, http_api

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
JAEGER = 'https://jaeger.example/trace/{trace_id}?a="><i>'


async def made(store, **headers: str):
    job = a_job("mail", {"to": "ann"}, headers_json=json.dumps(headers) if headers else None)
    await store.enqueue([job])
    return job.id


async def test_a_traced_job_links_to_its_trace_and_others_do_not(store):
    traced, plain = await made(store, traceparent=PARENT), await made(store)
    async with paged(store, trace_url=JAEGER) as site:
        vera = await site.visitor("viewer")

        page, other = [await vera.get(f"/jobs/{public_id(one)}") for one in (traced, plain)]
        answers = [(await vera.get(f"/api/v1/jobs/{one}")).json() for one in (traced, plain)]

    link = page.text.partition("Open trace")[0].rpartition("<a ")[2]
    assert f'href="https://jaeger.example/trace/{TRACE}?a=&#34;&gt;&lt;i&gt;"' in link
    assert 'rel="noopener noreferrer"' in link
    assert "Open trace" not in words(other)
    assert [(one["trace_id"], one["trace_url"]) for one in answers] == [
        (TRACE, JAEGER.replace("{trace_id}", TRACE)),
        (None, None),
    ]


async def test_without_an_address_there_is_no_link_but_the_api_knows_the_trace(store):
    traced = await made(store, traceparent=PARENT)
    async with paged(store) as site:
        vera = await site.visitor("viewer")

        page = await vera.get(f"/jobs/{public_id(traced)}")
        answer = (await vera.get(f"/api/v1/jobs/{traced}")).json()

    assert "Open trace" not in words(page)
    assert (answer["trace_id"], answer["trace_url"]) == (TRACE, None)


async def test_what_opentelemetry_leaves_is_what_the_link_reads():
    app = Rota(store=MemoryStore())

    @app.task
    async def send(to: str) -> None: ...

    provider = TracerProvider()
    instrument(app, tracer_provider=provider)
    with provider.get_tracer("test").start_as_current_span("request") as span:
        handle = await send.enqueue("ann")
    [job] = await app.store.get([handle.id])

    assert trace_id(job.headers_json) == f"{span.get_span_context().trace_id:032x}"


@pytest.mark.parametrize(
    "said",
    [
        "",
        "00-xyz",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE.upper()}-00f067aa0ba902b7-01",
        "javascript:alert(1)",
        f"00-{TRACE}/../x-00f067aa0ba902b7-01",
    ],
)
def test_a_header_that_is_no_trace_makes_no_link(said):
    assert trace_link("https://j.example/{trace_id}", json.dumps({"traceparent": said})) is None
    assert trace_link("https://j.example/{trace_id}", json.dumps({"traceparent": [said]})) is None
    assert trace_link("https://j.example/{trace_id}", '["traceparent"]') is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("javascript:alert('{trace_id}')", "not an address of the web"),
        ("jaeger.example/trace/{trace_id}", "not an address of the web"),
        ("https:///{trace_id}", "not an address of the web"),
        ("http://[::1/{trace_id}", "not an address of the web"),
        ("https://jaeger.example/trace/", r"put \{trace_id\} there"),
        ("https://jaeger.example/a b/{trace_id}", "has a space in it"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused_at_the_start(given, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=said):
        checked_trace_url(given)
    with pytest.raises(ConfigError, match=f"trace_url is .*{said}"):
        dashboard(Rota(store=MemoryStore()), trace_url=given)
    monkeypatch.setenv("ROTA_TRACE_URL", given)
    with pytest.raises(ConfigError, match=rf"the setting trace_url is .* \(from ROTA_TRACE_URL\).*{said}"):
        http_api(Rota(store=MemoryStore()))


async def test_the_setting_counts_unless_the_dashboard_is_told_otherwise(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rota.toml").write_text('trace_url = "https://file.example/{trace_id}"\n')

    from_file = Settings.load()
    monkeypatch.setenv("ROTA_TRACE_URL", "https://env.example/{trace_id}")

    assert (from_file.trace_url, from_file.origin("trace_url")) == (
        "https://file.example/{trace_id}",
        "rota.toml",
    )
    app = Rota(store=MemoryStore())
    assert dashboard(app).state.desk.trace_url == "https://env.example/{trace_id}"
    given = dashboard(app, trace_url="https://given.example/{trace_id}")
    assert given.state.desk.trace_url == "https://given.example/{trace_id}"
