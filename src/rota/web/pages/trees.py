"""JSON as people read it: a tree made on the server from the stored text: exact numbers, secrets marked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from rota._core.redaction import HIDDEN, redacted

MOST = 1_500
"""Parts of a tree; what has more is shown as text."""
DEEPEST = 30
LONGEST = 200_000
"""Characters of a text that a page shows; the API has the whole."""


class Literal(str):
    """A number as it is written."""

    __slots__ = ()


class Node(NamedTuple):
    """One value, with its name in the object around it, or its place in the list."""

    name: str
    kind: str
    """object, list, text, number, word (true, false, null) or hidden."""
    text: str = ""
    """Of a leaf: what it is. Of others: how many parts it has."""
    inner: tuple[Node, ...] = ()


class Shown(NamedTuple):
    """A document, as much of it as a page bears."""

    nodes: tuple[Node, ...]
    text: str | None
    """Instead of nodes: it is too large for a tree."""
    hidden: int
    """How many parts are hidden."""
    size: int
    cut: bool = False


def tree(stored: str | None, *, reveal: bool = False) -> Shown | None:
    """What is stored, to be read; None: nothing is. Unless it may be revealed, without what is sensitive."""
    if stored is None:
        return None
    plain = json.loads(stored)
    safe = plain if reveal else redacted(plain)
    exact = json.loads(stored, parse_int=Literal, parse_float=Literal)
    whole = _node("", safe, plain, exact)
    count = sum(1 for _ in _walked(whole))
    hidden = sum(node.kind == "hidden" for node in _walked(whole))
    if count > MOST or _deep(whole) > DEEPEST:
        text = _written(whole)
        return Shown((), text[:LONGEST], hidden, len(stored), len(text) > LONGEST)
    return Shown(whole.inner if whole.kind in ("object", "list") else (whole,), None, hidden, len(stored))


def _written(node: Node, indent: str = "") -> str:
    """A node as indented JSON, with its numbers as they are written."""
    deeper = f"{indent}  "
    if node.kind == "object" and node.inner:
        rows = (
            f"{deeper}{json.dumps(one.name, ensure_ascii=False)}: {_written(one, deeper)}"
            for one in node.inner
        )
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if node.kind == "list" and node.inner:
        rows = (deeper + _written(one, deeper) for one in node.inner)
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    if node.kind in ("object", "list"):
        return "{}" if node.kind == "object" else "[]"
    return node.text if node.kind in ("number", "word") else json.dumps(node.text, ensure_ascii=False)


def _node(name: str, safe: Any, plain: Any, exact: Any) -> Node:
    if isinstance(safe, dict):
        inner = tuple(_node(key, one, plain[key], exact[key]) for key, one in safe.items())
        return Node(name, "object", _parts(inner, "part"), inner)
    if isinstance(safe, list):
        inner = tuple(_node(str(at), one, plain[at], exact[at]) for at, one in enumerate(safe))
        return Node(name, "list", _parts(inner, "element"), inner)
    if safe != plain or type(safe) is not type(plain):
        return Node(name, "hidden", safe if isinstance(safe, str) else HIDDEN)
    if isinstance(exact, Literal):
        return Node(name, "number", str(exact))
    if isinstance(safe, str):
        return Node(name, "text", safe)
    return Node(name, "word", json.dumps(safe))


def _parts(inner: tuple[Node, ...], noun: str) -> str:
    return f"{len(inner):,} {noun}" + ("" if len(inner) == 1 else "s")


def _walked(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += one.inner


def _deep(node: Node) -> int:
    return 1 + max(map(_deep, node.inner), default=0)
