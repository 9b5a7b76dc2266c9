"""Pictures of the dashboard, in light and dark, wide and as on a phone.

    python scripts/screenshots.py /tmp/shots                    every page, whole
    python scripts/screenshots.py /tmp/shots --only jobs,job-dead --themes dark --widths 390
    python scripts/screenshots.py --docs                        those that README.md and docs/ show, into docs/images

The pages show the print shop of tests/pages, on an embedded PostgreSQL that lives as long as this takes.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/pages")]

from browser import NARROW, WIDE, Server, chromium, user, visiting  # noqa: E402 - found by the path above
from seeding import freshen, seed, shop_app  # noqa: E402
from tour import tour  # noqa: E402

from rota.stores.postgres import PostgresStore  # noqa: E402
from rota.stores.postgres.embedded import EmbeddedServer  # noqa: E402

if TYPE_CHECKING:
    from playwright.async_api import Browser

SIZES = {"1280": WIDE, "390": NARROW}
IMAGES = ROOT / "docs" / "images"
SHOWN = re.compile(r"images/([a-z-]+)-(light|dark)\.png")
CALLED = {"job": "job-dead"}
"""What the documentation calls a page, where the tour has several views of it."""


class Picture(NamedTuple):
    """One page in one look."""

    page: str
    theme: str
    width: str
    file: Path
    whole: bool = True


def all_of(folder: Path, words: argparse.Namespace, names: list[str]) -> list[Picture]:
    """The pictures that the command line asks for."""
    only = words.only.split(",") if words.only else names
    return [
        Picture(name, theme, width, folder / f"{name}-{theme}-{width}.png")
        for theme in words.themes.split(",")
        for width in words.widths.split(",")
        for name in names
        if name in only
    ]


def of_the_docs() -> list[Picture]:
    """The pictures that pages of the documentation show."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = {match for page in pages for match in SHOWN.findall(page.read_text())}
    return [
        Picture(CALLED.get(name, name), theme, "1280", IMAGES / f"{name}-{theme}.png", whole=False)
        for name, theme in sorted(found)
    ]


async def take(browser: Browser, server: Server, url: str, pictures: list[Picture]) -> None:
    """Take them, one visitor for each look."""
    stops = {stop.name: stop for stop in tour(url)}
    for theme, width in dict.fromkeys((picture.theme, picture.width) for picture in pictures):
        async with visiting(
            browser, server, user("manager"), viewport=SIZES[width], color_scheme=theme
        ) as visitor:
            for picture in pictures:
                if (picture.theme, picture.width) == (theme, width):
                    await visitor.page.goto(server.base + stops[picture.page].path)
                    await visitor.page.wait_for_timeout(350)  # charts draw, and fonts settle
                    await visitor.page.screenshot(path=picture.file, full_page=picture.whole)
                    print(picture.file)
            print(*visitor.guard.seen, sep="\n")
            visitor.guard.seen.clear()


async def pictures(url: str, words: argparse.Namespace) -> None:
    """Serve the pages of a store that is seeded, and look at them."""
    server = Server(shop_app(url=url), name="production")
    await server.start()
    try:
        async with chromium() as browser:
            names = [stop.name for stop in tour(url)]
            wanted = of_the_docs() if words.docs else all_of(words.folder, words, names)
            await take(browser, server, url, wanted)
    finally:
        await server.stop()


async def main(words: argparse.Namespace) -> None:
    """Seed a store, and take the pictures."""
    if words.url:
        freshen(words.url)
        await pictures(words.url, words)
        return
    with tempfile.TemporaryDirectory(prefix="rota-screenshots-") as place:
        embedded = EmbeddedServer(Path(place) / "server")
        url = embedded.start()
        try:
            store = PostgresStore(url)
            await store.migrate()
            await store.close()
            await seed(url)
            await pictures(url, words)
        finally:
            embedded.destroy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=IMAGES)
    parser.add_argument("--docs", action="store_true", help="those that the documentation shows")
    parser.add_argument("--only", default="", help="names of pages, with commas")
    parser.add_argument("--themes", default="light,dark")
    parser.add_argument("--widths", default="1280,390")
    parser.add_argument("--url", help="a store that is seeded already")
    asked = parser.parse_args()
    if not asked.docs and asked.folder == IMAGES:
        parser.error("name a folder, or say --docs")
    asked.folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(main(asked))
