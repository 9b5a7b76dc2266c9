"""The browser and its guard themselves: a guard that sees nothing would let every page pass."""

from __future__ import annotations

import pytest
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route

from rota import Rota


@pytest.fixture
def app(fresh_database) -> Rota:
    """An app on an empty store."""
    return Rota(fresh_database)


async def test_a_visitor_is_logged_in_with_the_role_he_was_given(app, serve, visit):
    server = await serve(app)
    otto = await visit(server, "operator", "acme")
    otto.guard.expect("/favicon.ico")  # what is no page names no icon of its own

    page = await otto.go("/api/v1/session")

    said = await page.evaluate("document.body.innerText")
    assert '"role":"operator"' in said
    assert '"tenant":"acme"' in said


async def test_nobody_is_let_in_without_a_login(app, serve, visit):
    server = await serve(app)
    nobody = await visit(server, None)
    nobody.guard.expect("/favicon.ico")

    await nobody.go("/api/v1/queues", status=401)


async def test_the_pages_can_stand_under_a_prefix(app, serve, visit):
    server = await serve(app, prefix="/a/b")
    vera = await visit(server, "viewer")
    vera.guard.expect("/favicon.ico")

    await vera.go("/api/v1/session")

    assert vera.page.url.endswith("/a/b/api/v1/session")


BAD = {
    "policy: script-src-elem inline": "<script>document.title = 'ran'</script>",
    "policy: style-src": "<p style='color: red'>red</p>",
    "another host: http://example.org/": "<img src='http://example.org/spy.png' alt=''>",
    "answer: 404 ": "<img src='/nothing.png' alt=''>",
    "script: ": "<script src='/broken.js'></script>",
    "console error: ": "<script src='/complaining.js'></script>",
}


@pytest.mark.parametrize("kind", BAD)
async def test_the_guard_sees_what_must_not_happen_on_a_page(kind, app, serve, visit):
    server = await serve(app)
    scripts = {"/broken.js": "throw Error('no')", "/complaining.js": "console.error('oh')", "/bad": BAD[kind]}
    for path, text in scripts.items():
        answer = (
            HTMLResponse(f"<!doctype html><title>bad</title>{text}")
            if path == "/bad"
            else PlainTextResponse(text, media_type="text/javascript")
        )
        server.site.router.routes.insert(0, Route(path, lambda _request, answer=answer: answer))
    visitor = await visit(server, None)

    await visitor.go("/bad")
    await visitor.page.wait_for_load_state("networkidle")

    seen, visitor.guard.seen = visitor.guard.seen, []
    assert [line for line in seen if line.startswith(kind)], seen
    visitor.guard.check()
