"""What the pages load in the browser comes from npm by the lock file, goes into the wheel, and never into git."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

NEEDED = {"htmx.min.js", "hx-sse.min.js", "uPlot.iife.min.js", "uPlot.min.css"}
LICENCES = {"htmx.LICENSE.txt", "uPlot.LICENSE.txt"}
IN_THE_PACKAGE = "rota/web/static/vendor/"


@pytest.fixture(scope="module")
def assets(house) -> ModuleType:
    """scripts/assets.py as a module."""
    spec = importlib.util.spec_from_file_location("assets_script", house.root / "scripts" / "assets.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(house, tmp_path) -> Path:
    """The project as git knows it: without anything that was fetched before."""
    copy = tmp_path / "tree"
    for path in house.files():
        if house.name(path).split("/")[0] not in ("tests", "benchmarks", "docs", "examples"):
            (copy / house.name(path)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy / house.name(path))
    return copy


def built(target: str, tree: Path, **environment: str) -> tuple[Path, str]:
    """The file that the build made, and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", tree / "out"],
        cwd=tree,
        env=os.environ | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    [made] = (tree / "out").iterdir()
    return made, done.stdout + done.stderr


def vendored(wheel: Path) -> set[str]:
    names = zipfile.ZipFile(wheel).namelist()
    return {name.removeprefix(IN_THE_PACKAGE) for name in names if name.startswith(IN_THE_PACKAGE)}


def without_npm(tmp_path: Path) -> str:
    """A PATH on which there is no npm."""
    empty = tmp_path / "bin"
    empty.mkdir(exist_ok=True)
    return str(empty)


def test_the_lock_file_names_no_registry_and_pins_what_is_fetched_by_its_hash(house):
    text = (house.root / "package-lock.json").read_text()
    packages = {name: entry for name, entry in json.loads(text)["packages"].items() if name}

    assert "://" not in text
    assert [name for name, entry in packages.items() if "resolved" in entry or "integrity" not in entry] == []


def test_the_packages_are_asked_for_by_their_exact_versions(house):
    asked = json.loads((house.root / "package.json").read_text())

    assert asked["private"] is True
    versions = asked["dependencies"] | asked["devDependencies"]
    assert {"htmx.org", "uplot", "axe-core"} == versions.keys()
    assert [
        f"{name}@{word}" for name, word in versions.items() if not re.fullmatch(r"\d+\.\d+\.\d+", word)
    ] == []


def test_git_has_none_of_the_fetched_files(house):
    committed = [house.name(path) for path in house.files() if "/vendor/" in house.name(path)]

    assert committed == []
    assert [house.name(path) for path in house.files(".js") if ".min." in path.name] == []


def test_a_wheel_has_the_scripts_and_their_licences_also_one_made_from_an_sdist(tree, tmp_path, assets):
    try:
        assets.fetch(tree)
        shutil.rmtree(tree / assets.VENDOR)
    except assets.Missing as why:  # a machine without npm, or offline
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(why))
    sdist, _ = built("sdist", tree)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    [unpacked] = (tmp_path / "unpacked").iterdir()

    wheel, said = built("wheel", unpacked, PATH=without_npm(tmp_path))

    assert vendored(wheel) == NEEDED | LICENCES | {assets.STAMP}
    assert "without" not in said


def test_without_npm_the_wheel_is_built_without_the_scripts_and_the_build_says_so(tree, tmp_path):
    wheel, said = built("wheel", tree, PATH=without_npm(tmp_path))

    assert vendored(wheel) == set()
    assert "built without its dashboard's scripts: there is no npm in PATH" in said


def test_a_packager_can_ask_for_a_build_that_asks_no_registry(tree):
    wheel, said = built("wheel", tree, ROTA_NPM="no")

    assert vendored(wheel) == set()
    assert "ROTA_NPM=no" in said


def test_files_that_fit_the_lock_are_not_fetched_again_and_others_are(tree, assets, monkeypatch):
    folder = tree / assets.VENDOR
    folder.mkdir(parents=True)
    for name in assets.FILES:
        (folder / name).write_text("fetched before")
    (folder / assets.STAMP).write_text(json.dumps(assets.wanted(tree)))
    monkeypatch.setenv("ROTA_NPM", "no")

    assert assets.fetch(tree) is False
    lock = tree / "package-lock.json"
    lock.write_text(lock.read_text().replace("4.0.0", "4.0.1"))
    with pytest.raises(assets.Missing):
        assets.fetch(tree)
