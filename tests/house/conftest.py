"""What the house tests look at: the project's own files, as git knows them."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@cache
def _tracked() -> tuple[Path, ...]:
    """Every file that is, or would be, committed; what .gitignore names is not ours."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(sorted(path for name in listing.split("\0") if name and (path := ROOT / name).is_file()))


class House:
    """The project's tree, with questions to ask of it."""

    root = ROOT

    def files(self, *suffixes: str, under: str = "") -> list[Path]:
        """The project's files below `under`, all or those with one of the suffixes."""
        return [
            path
            for path in _tracked()
            if path.is_relative_to(ROOT / under) and (not suffixes or path.suffix in suffixes)
        ]

    def texts(self, *suffixes: str, under: str = "") -> Iterator[tuple[str, str]]:
        """Name and text of each file that is text."""
        for path in self.files(*suffixes, under=under):
            try:
                yield self.name(path), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue

    def trees(self, *, under: str) -> Iterator[tuple[str, ast.Module]]:
        """Name and syntax tree of each Python file."""
        for name, text in self.texts(".py", under=under):
            yield name, ast.parse(text, filename=name)

    @staticmethod
    def name(path: Path) -> str:
        return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def house() -> House:
    return House()


@pytest.fixture(scope="session")
def requirements() -> ModuleType:
    """scripts/requirements.py as a module."""
    spec = importlib.util.spec_from_file_location("requirements_script", ROOT / "scripts" / "requirements.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
