"""What holds on every page: it is whole, quiet, narrow and light enough, accessible, and readable without scripts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import AXE, NARROW, WIDE
from tour import NOT_PAGES, Stop, tour

import rota.web
from rota.web.pages import page_table

STATIC = Path(rota.web.__file__).parent / "static"
SIZES = {"wide": WIDE, "narrow": NARROW}
RULES = {
    "light": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    # The same page in other colours: what is not about colours was looked at before.
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
KB = 1000
MOST, MOST_PACKED, MOST_SCRIPT, MOST_STYLE = 186 * KB, 62 * KB, 15 * KB, 25 * KB
ADDRESSES = """
[...document.querySelectorAll('*')].flatMap(
    e => ['href', 'src', 'action', 'hx-get', 'hx-sse:connect'].map(name => e.getAttribute(name)).filter(Boolean))
"""


def pages(url: str) -> list[Stop]:
    """One view of each page, for what does not depend on what the page is about."""
    return list({stop.verb: stop for stop in reversed(tour(url))}.values())


async def test_every_page_stands_under_a_prefix_and_no_address_leaves_it(
    lively_app, lively_database, serve, visit
):
    server = await serve(lively_app, prefix="/a/b")
    mona = await visit(server)
    for stop in pages(lively_database):
        page = await mona.go(stop.path)
        addresses = await page.evaluate(ADDRESSES)
        outside = [one for one in addresses if one.startswith("/") and not one.startswith("/a/b")]
        assert outside == [], stop.name
    paths = {urlsplit(request).path for request in mona.guard.requests}
    assert [path for path in paths if not path.startswith("/a/b/")] == []


async def a_view(visitor) -> None:
    """Save a view, so that the jobs page has all that it may have."""
    page = await visitor.go("/jobs?filter=state:dead")
    await page.locator("#save-view summary").click()
    await page.get_by_label("Name", exact=True).fill("what died")
    await page.get_by_role("button", name="Save view").click()
    await page.get_by_role("navigation", name="Saved views").wait_for()


@pytest.mark.timeout(300)  # a look at every element of every page
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
async def test_every_page_is_quiet_narrow_enough_and_accessible(
    theme, size, lively_app, lively_database, serve, visit
):
    axe = AXE.read_text()
    server = await serve(lively_app)
    mona = await visit(server, viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    await a_view(mona)
    broken: dict[str, dict[str, list[str]]] = {}
    for stop in tour(lively_database):
        page = await mona.go(stop.path)
        titles = await page.locator("h1").all_inner_texts()
        wider = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert len(titles) == 1, (stop.name, titles)
        assert wider <= 0, f"{stop.name} is {wider} px wider than its window"
        await page.evaluate(f"{axe}; 0")  # past the policy of the page, which stays on
        asked = json.dumps({"runOnly": RULES[theme], "resultTypes": ["violations"]})
        for violation in await page.evaluate(f"axe.run(document, {asked}).then(result => result.violations)"):
            places = broken.setdefault(f"{violation['id']}: {violation['help']}", {})
            for node in violation["nodes"][:3]:
                places.setdefault(f"{node['target']} {node['html'][:160]}", []).append(stop.name)
    assert not broken, json.dumps(broken, indent=1)


async def test_no_page_is_heavier_than_its_budget(lively_app, lively_database, serve, visit):
    server = await serve(lively_app)
    mona = await visit(server)
    weights = {}
    for stop in pages(lively_database):
        mona.guard.requests.clear()
        page = await mona.go(stop.path)
        await page.wait_for_load_state("load")
        names = {
            request.split("/static/")[1].split("?")[0]
            for request in mona.guard.requests
            if "/static/" in request
        }
        files = [(STATIC / name).read_bytes() for name in names]
        weights[stop.name] = (sum(map(len, files)), sum(len(gzip.compress(one, 6)) for one in files))

    assert {name: raw for name, (raw, _) in weights.items() if raw > MOST} == {}
    assert {name: packed for name, (_, packed) in weights.items() if packed > MOST_PACKED} == {}


def test_our_own_script_and_style_sheet_stay_small():
    assert sum(path.stat().st_size for path in STATIC.glob("*.js")) <= MOST_SCRIPT
    assert sum(path.stat().st_size for path in STATIC.glob("*.css")) <= MOST_STYLE


async def test_every_page_can_be_read_without_scripts(lively_app, lively_database, serve, visit):
    server = await serve(lively_app)
    plain, full = await visit(server, java_script_enabled=False), await visit(server)
    for stop in pages(lively_database):
        page, other = await plain.go(stop.path), await full.go(stop.path)
        rows, scripted = [await where.locator("main table tbody tr").count() for where in (page, other)]
        assert await page.locator("h1").is_visible(), stop.name
        assert rows == scripted, stop.name
        assert await page.locator("main").inner_text() != ""


def test_the_tour_leaves_no_page_out(lively_database):
    pages = {route.permission.verb for route in page_table() if route.method == "GET"}

    assert pages - NOT_PAGES - {stop.verb for stop in tour(lively_database)} == set()
