"""The build hook: every wheel, sdist and editable install has the dashboard's scripts, where npm can fetch them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _assets(root: Path) -> ModuleType:
    """scripts/assets.py, which is no package: a build has only this folder."""
    spec = importlib.util.spec_from_file_location("rota_assets", root / "scripts" / "assets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class DashboardAssets(BuildHookInterface):  # type: ignore[misc, type-arg, unused-ignore]
    """Fetches the files by the lock, unless they are there already; a machine without npm builds without them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files of the package are gathered."""
        del version, build_data
        root = Path(self.root)
        assets = _assets(root)
        try:
            assets.fetch(root)
        except assets.Missing as why:
            self.app.display_warning(
                f"Rota is built without its dashboard's scripts: {why} The pages work without them, and say so."
            )
