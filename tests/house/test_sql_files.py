"""SQL lives in files, one verb each, led by why it is so and by the index or key it reads."""

from __future__ import annotations

import ast
import re
import tomllib

SQL = "src/rota/stores/postgres"
COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
STATEMENT = re.compile(
    r"^\s*(SELECT\s+.+\bFROM\b|INSERT\s+INTO\b|UPDATE\s+[\w.]+\s+(AS\s+\w+\s+)?SET\b|DELETE\s+FROM\b|WITH\s+\w+\s+AS\b"
    r"|CREATE\s+(TABLE|INDEX|SCHEMA|FUNCTION|VIEW)|ALTER\s+(TABLE|DATABASE)|DROP\s+(TABLE|INDEX|SCHEMA|FUNCTION))",
    re.IGNORECASE | re.DOTALL,
)


def leading_comment(text: str) -> str:
    """The comment lines before the first statement, as one text."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").strip())
    return " ".join(lines).strip()


def test_every_sql_file_begins_with_its_why(house):
    mute = [name for name, text in house.texts(".sql", under=SQL) if len(leading_comment(text).split()) < 5]

    assert not mute, "\n".join(mute)


def test_every_statement_says_how_it_finds_its_rows(house):
    """An index, a key, a partition; or that the table is so small that it does not matter."""
    silent = [
        name
        for name, text in house.texts(".sql", under=f"{SQL}/sql")
        if not re.search(
            r"\b(index|indexes|key|keys|partitions?|(tiny|small) table)\b",
            leading_comment(text),
            re.IGNORECASE,
        )
    ]

    assert not silent, "\n".join(silent)


def test_sql_comments_hold_nothing_that_the_driver_would_read_as_a_parameter(house):
    """psycopg looks for percent signs and braces in comments too."""
    traps = [
        f"{name}: {comment.strip()[:100]}"
        for name, text in house.texts(".sql", under=f"{SQL}/sql")
        for comment in COMMENT.findall(text)
        if re.search(r"[%{}]", comment)
    ]

    assert not traps, "\n".join(traps)


def statements(tree: ast.Module) -> list[str]:
    """SQL in the code of a file. Docstrings may quote it for the reader."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        f"{node.lineno}: {' '.join(node.value.split())[:80]}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
        and STATEMENT.match(node.value)
    ]


def test_python_files_hold_no_statements_but_the_listed_ones(house):
    allowed = tomllib.loads((house.root / "tests/house/sql_in_python.toml").read_text())["allowed"]
    found = {name: held for name, tree in house.trees(under="src/rota") if (held := statements(tree))}
    strays = [
        f"{name}:{line}"
        for name, held in found.items()
        for line in held
        if len(held) > allowed.get(name, {}).get("statements", 0)
    ]
    stale = [name for name, entry in allowed.items() if len(found.get(name, [])) < entry["statements"]]

    assert not strays, "\n".join(strays)
    assert not stale, "lower or remove these in sql_in_python.toml:\n" + "\n".join(stale)


def test_the_search_knows_statements_from_sentences():
    assert STATEMENT.match("SELECT id\nFROM rota.jobs")
    assert STATEMENT.match("update rota.jobs set state = 'held'")
    assert not STATEMENT.match("Select a job from the list below.".replace("from", "in"))
    assert not STATEMENT.match("with a worker")
    assert (
        leading_comment("-- Take jobs.\n-- Reads index x.\nSELECT 1;\n-- later")
        == "Take jobs. Reads index x."
    )
