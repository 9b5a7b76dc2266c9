"""One version, written once; a changelog that knows it; and doors that open."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import tomllib


def version(house) -> str:
    return tomllib.loads((house.root / "pyproject.toml").read_text())["project"]["version"]


def test_the_changelog_has_an_entry_for_this_version(house):
    changelog = (house.root / "CHANGELOG.md").read_text()

    assert re.search(rf"^## {re.escape(version(house))}\b", changelog, re.MULTILINE)


def test_the_version_is_written_in_pyproject_alone(house):
    literal = f'"{version(house)}"'
    copies = [name for name, text in house.texts(".py", ".toml", ".sql", under="src") if literal in text]

    assert not copies, "\n".join(copies)


def test_the_installed_package_knows_its_version(house):
    assert importlib.metadata.version("rota") == version(house), (
        "run `make check`, which installs the project again"
    )


def test_ci_runs_make_test(house):
    run = house.root / ".ci" / "run"

    assert os.access(run, os.X_OK)
    assert "make test" in run.read_text()


def test_every_make_target_that_a_page_names_exists(house):
    targets = set(re.findall(r"^([a-z]+):", (house.root / "Makefile").read_text(), re.MULTILINE))
    unknown = [
        f"{name}: make {word}"
        for name, text in house.texts(".md")
        for word in re.findall(r"(?:`|^\$ |^)make ([a-z]+)", text, re.MULTILINE)
        if word not in targets
    ]

    assert {"demo", "check", "test", "bench", "chaos", "requirements", "clean"} <= targets
    assert not unknown, "\n".join(unknown)


def test_links_between_pages_lead_somewhere(house):
    link = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)(?:#[^)]*)?\)")
    broken = [
        f"{house.name(path)} -> {target}"
        for path in house.files(".md")
        for target in link.findall(path.read_text())
        if not (path.parent / target).exists()
    ]

    assert not broken, "\n".join(broken)


def test_the_shell_scripts_are_well_formed(house):
    for path in [*house.files(".sh", under="scripts"), house.root / ".ci" / "run"]:
        subprocess.run(["bash", "-n", str(path)], check=True)
