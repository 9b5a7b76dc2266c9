"""The app that a test run is about, from its name."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from rota.app import Rota
from rota.errors import ConfigError

HOW = (
    'Write rota_app = "module:attribute" into the pytest settings, or override the fixture rota_app in conftest.py:\n'
    "    @pytest.fixture(scope='session')\n"
    "    def rota_app():\n"
    "        from shop.jobs import app\n"
    "        return app"
)


def app_at(name: str | None) -> Rota:
    """The app that `module:attribute` names; without a name, the one of rota.toml."""
    if name is None:
        from rota.config import Settings

        name = Settings.load().app
    if name is None:
        raise ConfigError(f"the fixture rota_app does not know which app to test. {HOW}")
    target, _, attribute = name.partition(":")
    if target.endswith(".py"):
        path = Path(target).resolve()
        sys.path.insert(0, str(path.parent))
        target = path.stem
    try:
        module = import_module(target)
    except ModuleNotFoundError as error:
        if error.name != target:
            raise
        raise ConfigError(f"rota_app is {name!r}, and there is no module {target!r}. {HOW}") from error
    if attribute:
        found = getattr(module, attribute, None)
        if not isinstance(found, Rota):
            raise ConfigError(f"rota_app is {name!r}, and {attribute!r} of {target} is no Rota app. {HOW}")
        return found
    apps = {id(value): value for value in vars(module).values() if isinstance(value, Rota)}
    if len(apps) != 1:
        raise ConfigError(
            f"rota_app is {name!r}, and {target} has {len(apps)} apps; name the attribute. {HOW}"
        )
    return next(iter(apps.values()))
