"""Words that do not belong into the project: promises for later, places of one machine, names that say nothing."""

from __future__ import annotations

import ast
import re

# Written in pieces, so that this file does not find itself.
LATER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b")
MACHINE = re.compile(
    r"(?<![\w.}~/])/(?:wo" + r"rk|ro" + r"ot|opt/wh" + r"eels|opt/py" + r"pi|tmp/br" + r"ief)\b(?!-)"
)
OUTSIDE = re.compile(r"\.\./sha" + r"red\b|/ho" + r"me/[a-z]")
HOSTS = ["files.python" + "hosted", "registry.npm" + "js", "pypi.org" + "/simple", "arti" + "factory"]
REGISTRY = re.compile("|".join([*map(re.escape, HOSTS), "--(?:extra-)?index" + "-url"]), re.IGNORECASE)
EMPTY_NAMES = {"manager", "helper", "helpers", "util", "utils", "common", "base", "info", "handler", "data"}


def places(house, pattern: re.Pattern[str], *suffixes: str) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in house.texts(*suffixes)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_nothing_is_left_for_later(house):
    found = places(house, LATER)

    assert not found, "\n".join(found)


def test_no_file_names_a_place_of_one_machine(house):
    found = [*places(house, MACHINE), *places(house, OUTSIDE)]

    assert not found, "\n".join(found)


def test_no_file_names_a_package_registry(house):
    found = places(house, REGISTRY)

    assert not found, "\n".join(found)


def test_modules_and_classes_have_names_that_say_something(house):
    modules = [
        name
        for name, _ in house.texts(".py", under="src/rota")
        if name.split("/")[-1].removesuffix(".py") in EMPTY_NAMES
    ]
    classes = [
        f"{name}:{node.lineno} class {node.name}"
        for name, tree in house.trees(under="src/rota")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and EMPTY_NAMES & {word.lower() for word in re.findall(r"[A-Z][a-z]+", node.name)}
    ]

    assert not modules + classes, "\n".join(modules + classes)


def test_the_search_would_find_what_it_looks_for():
    assert LATER.search("# TO" + "DO: later")
    assert MACHINE.search("cd /wo" + "rk/main")
    assert MACHINE.search('"/ro' + 'ot/.pyenv"')
    assert not MACHINE.search("src/rota/worker")
    assert not MACHINE.search("the docs/work directory")
    assert OUTSIDE.search("see ../sha" + "red/DESIGN.md")
    assert REGISTRY.search("https://registry.np" + "mjs.org/x")
