"""Nothing that somebody stored or sent becomes code, a template or a shell line; no secret lies in the repository."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle", "yaml", "ruamel",
    "multiprocessing", "concurrent.futures.process", "code", "codeop", "xml", "telnetlib", "ftplib",
}  # fmt: skip
"""What makes objects out of bytes, or speaks in the clear. `multiprocessing` pickles whatever it sends."""
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "pty.spawn", "input"}
BY_NAME = {"import_module", "run_path", "run_module", "exec_module", "spec_from_file_location"}
LOADERS = {
    "src/rota/__init__.py": "our own names, from a table",
    "src/rota/worker/__init__.py": "our own names, from a table",
    "src/rota/testing/__init__.py": "our own names, from a table",
    "src/rota/cli/main.py": "our own commands, from a table",
    "src/rota/cli/locate.py": "the app that the person at the command line names",
    "src/rota/testing/locating.py": "the app that a test names",
    "src/rota/worker/executors/process/place.py": "what the worker has loaded already, told to its own child",
}
"""Files that import by name, and whose word they take. A job's row is never among them."""
TEMPLATES = re.compile(
    r"\|\s*safe\b|autoescape\s+false|<script(?![^>]*\ssrc=)|\son[a-z]+\s*=\s*[\"']|javascript:", re.IGNORECASE
)

SECRETS = {
    "a token of Rota": r"rota_[a-z2-7]{12}_[A-Za-z0-9]{40}[0-9a-f]{8}",
    "a key of AWS": r"\bA(?:KIA|SIA)[0-9A-Z]{16}\b",
    "a token of GitHub": r"\bgh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60}",
    "a token of GitLab": r"\bglpat-[A-Za-z0-9_-]{20}",
    "a token of Slack": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "a key of Google": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "a token of an index": r"\bpypi-[A-Za-z0-9_-]{50}|\bnpm_[A-Za-z0-9]{36}",
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s*\n?[A-Za-z0-9+/=\\]{16}",
    "a web token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
}
SAMPLES = ("tests/core/test_redaction.py", "tests/sensitive_samples.py")
"""Made up, for the tests that they are hidden."""


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def dangerous(name: str, tree: ast.AST) -> Iterator[str]:
    for line, module in imported(tree):
        if any(f"{module}.".startswith(f"{one}.") for one in MODULES):
            yield f"{name}:{line} imports {module}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in CALLS:
            yield f"{name}:{node.lineno} calls {called}"
        if called.split(".")[-1] in BY_NAME and name not in LOADERS:
            yield f"{name}:{node.lineno} imports by name ({called}): say in LOADERS whose word it takes"
        if any(
            word.arg == "shell" and called.split(".")[0] in ("subprocess", "asyncio")
            for word in node.keywords
        ):
            yield f"{name}:{node.lineno} speaks to a shell"
        if called.endswith("Markup") and not (node.args and isinstance(node.args[0], ast.Constant)):
            yield f"{name}:{node.lineno} takes a text that it did not write for HTML"


def test_nothing_stored_or_sent_becomes_code(house):
    found = [trouble for name, tree in house.trees(under="src/rota") for trouble in dangerous(name, tree)]

    assert not found, "\n".join(found)


def test_every_file_that_may_import_by_name_does(house):
    used = {
        name
        for name, tree in house.trees(under="src/rota")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in BY_NAME
    }

    assert used == set(LOADERS)


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from multiprocessing import Pool",
        "import yaml.loader",
        "eval(text)",
        "__import__(job.task)",
        "importlib.import_module(job.task)",
        "subprocess.run(text, shell=True)",
        "Markup(f'<b>{job.task}</b>')",
    ],
)
def test_the_search_would_find_them(line):
    assert list(dangerous("src/rota/somewhere.py", ast.parse(line)))
    assert not list(
        dangerous("src/rota/somewhere.py", ast.parse("json.loads(text); Markup('<b>{}</b>').format(x)"))
    )


def test_templates_escape_everything_and_hold_no_script(house):
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in house.texts(".html", ".svg", under="src/rota/web")
        for number, line in enumerate(text.splitlines(), 1)
        if TEMPLATES.search(line)
    ]

    assert not found, "\n".join(found)
    assert all(
        map(TEMPLATES.search, ["{{ x|safe }}", "<script>", '<a onclick="x()">', "href='javascript:x'"])
    )
    assert not TEMPLATES.search('<script src="/static/rota.js" defer></script>')


def test_no_secret_lies_in_the_repository(house):
    found = [
        f"{name}: {what}"
        for name, text in house.texts()
        if name not in SAMPLES
        for what, form in SECRETS.items()
        if re.search(form, text)
    ]

    assert not found, "\n".join(found)


def test_the_search_for_secrets_knows_the_made_up_ones(house):
    samples = "".join(text for name, text in house.texts(".py", under="tests") if name in SAMPLES)
    known = {what for what, form in SECRETS.items() if re.search(form, samples)}

    assert known >= {"a key of AWS", "a private key", "a web token"}
    assert re.search(SECRETS["a token of Rota"], "rota_" + "a" * 12 + "_" + "B" * 40 + "0" * 8)
