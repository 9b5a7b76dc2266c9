"""Pages as people see them: templates, with what every page needs to know of who looks and how he likes it."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode
from zlib import crc32

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from rota.web.pages import drawing, words
from rota.web.pages.icons import ICONS
from rota.web.pages.notices import taken
from rota.web.roles import Role

if TYPE_CHECKING:
    from rota.web.asking import Asking

STATIC = Path(__file__).parent.parent / "static"
VENDOR = ("vendor/htmx.min.js", "vendor/hx-sse.min.js", "vendor/uPlot.iife.min.js", "vendor/uPlot.min.css")
"""What npm brings at build time. Without it the pages stand still, and say so."""
THEMES = ("system", "light", "dark")
RAIL = (
    ("page.overview", "Overview", "overview"),
    ("page.jobs", "Jobs", "jobs"),
    ("page.failures", "Failures", "failures"),
    ("page.queues", "Queues", "queues"),
    ("page.tasks", "Tasks", "tasks"),
    ("page.workers", "Workers", "workers"),
    ("page.schedules", "Schedules", "schedules"),
    ("page.activity", "Activity", "activity"),
    ("page.system", "System", "system"),
)
HUES = 6


@cache
def environment() -> Environment:
    """The templates. Everything is escaped, and a name that nobody gave is an error."""
    env = Environment(
        loader=PackageLoader("rota.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(words.FILTERS)
    env.globals.update(
        draw=drawing,
        icons=ICONS,
        rail=RAIL,
        vendor=all((STATIC / name).exists() for name in VENDOR),
        version=version("rota"),
        looks=words.LOOKS,
        Role=Role,
    )
    return env


@cache
def stamped(name: str) -> str:
    """The name of a static file with a stamp of its content, so that browsers may keep it for ever."""
    path = STATIC / name
    stamp = sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else "none"
    return f"{name}?{stamp}"


def render(
    asked: Asking,
    template: str,
    *,
    title: str,
    here: str,
    status: int = 200,
    topics: str = "",
    at: str | None = None,
    **context: Any,
) -> HTMLResponse:
    """A page. `here` is the entry of the rail that it belongs to, `topics` are the events that make it look again.

    `at` is where forms lead back to; None: to the address that was asked.
    """
    response = HTMLResponse(status_code=status)
    page = environment().get_template(template)
    text = page.render(title=title, here=here, topics=topics, **_around(asked, response, at), **context)
    response.body = text.encode()
    response.headers["content-length"] = str(len(response.body))
    return response


def _around(asked: Asking, response: HTMLResponse, at: str | None) -> dict[str, Any]:
    """What every template may use."""
    request = asked.request
    theme = request.cookies.get("rota_theme", "system")
    part = request.headers.get("hx-request") == "true"
    return {
        "layout": "part.html" if part else "layout.html",
        "user": asked.known,
        "may": lambda role: asked.known is not None and asked.known.role.allows(Role(role)),
        "url": lambda verb, **path: path_to(asked, verb, **path),
        "static": lambda name: f"{asked.root}/static/{stamped(name)}",
        "path": request.url.path if at is None else at,
        "query": request.url.query if at is None else "",
        "theme": theme if theme in THEMES else "system",
        "notice": None if part else taken(asked, response),
        "place": asked.desk.place,
        "only_shows": asked.desk.door.only_shows,
        "hue": hue(asked.desk.place),
    }


def path_to(asked: Asking, verb: str, **path: object) -> str:
    """The path of a route under whatever prefix we are mounted; what is None is left out of its query."""
    query = path.pop("query", None)
    written = {
        name: quote(value, safe="/") if isinstance(value, str) else value for name, value in path.items()
    }
    found = f"{asked.root}{asked.request.app.url_path_for(verb, **written)}"
    if isinstance(query, dict):
        said = urlencode(
            {name: value for name, value in query.items() if value not in (None, "")}, doseq=True
        )
        found += f"?{said}" if said else ""
    return found


def hue(name: str) -> str:
    """The colour of an environment's badge: what is called production is red, others differ by their names."""
    return "prod" if "prod" in name.lower() else f"h{crc32(name.encode()) % HUES}"
