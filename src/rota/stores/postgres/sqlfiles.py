"""Statements by verb: `statement("claim")` is the text of sql/claim.sql."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import LiteralString


@cache
def statement(verb: str) -> LiteralString:
    text = files("rota.stores.postgres").joinpath("sql", f"{verb}.sql").read_text("utf-8")
    # Comments explain to people; the server need not parse them at every call.
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return "\n".join(lines)  # pyright: ignore - our own file, not user input
