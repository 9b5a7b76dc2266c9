"""The pytest plugin. It is imported by every pytest run beside Rota, so it loads nothing before a test asks for it.

Fixtures: `rota_app` (the app; override it, or name it in the ini file) and
`rota_testing` (a kit on it). `@pytest.mark.rota(mode="inline")` chooses the
mode of a test, `--rota-mode` or the ini setting `rota_mode` that of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from rota.app import Rota
    from rota.testing.kit import Kit

MODES = ("manual", "inline", "real")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rota")
    group.addoption(
        "--rota-mode", choices=MODES, help="How the fixture rota_testing runs jobs (default: manual)."
    )
    group.addoption("--rota-url", metavar="URL", help="The PostgreSQL of mode real; else an embedded one.")
    parser.addini("rota_app", "The app of the fixture rota_app, as module:attribute.")
    parser.addini("rota_mode", "How the fixture rota_testing runs jobs: manual, inline or real.")
    parser.addini("rota_url", "The PostgreSQL of mode real; else an embedded one.")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "rota(mode, **options): how the fixture rota_testing runs jobs in this test, and the options of that mode",
    )


@pytest.fixture(scope="session")
def rota_app(pytestconfig: pytest.Config) -> Rota:
    """The app under test: the ini setting `rota_app`, else `app` of rota.toml. Override it for another one."""
    from rota.testing.locating import app_at

    return app_at(pytestconfig.getini("rota_app") or None)


@pytest.fixture
def rota_testing(request: pytest.FixtureRequest, rota_app: Rota) -> Iterator[Kit]:
    """The app on a store of this test's own, in the mode that its mark, the command line or the ini file names."""
    from rota import testing

    mode, options = _chosen(request)
    with getattr(testing, mode)(rota_app, **options) as kit:
        yield kit


def _chosen(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    config = request.config
    mark = request.node.get_closest_marker("rota")
    options = dict(mark.kwargs) if mark is not None else {}
    if mark is not None and len(mark.args) > 1:
        raise pytest.UsageError(f"@pytest.mark.rota takes one mode and named options, not {mark.args!r}.")
    mode = (
        (mark.args[0] if mark is not None and mark.args else None)
        or options.pop("mode", None)
        or config.getoption("--rota-mode")
        or config.getini("rota_mode")
        or "manual"
    )
    if mode not in MODES:
        raise pytest.UsageError(f"the mode {mode!r} of rota_testing is none of {', '.join(MODES)}.")
    if mode == "real":
        options.setdefault("url", config.getoption("--rota-url") or config.getini("rota_url") or None)
        if options["url"] is not None:
            # Before the first test the database must be free of jobs; afterwards all that is in it is the tests' own.
            options.setdefault("fresh", options["url"] in _used)
            _used.add(options["url"])
    return mode, options


_used: set[str] = set()
