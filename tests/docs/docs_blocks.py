"""The code blocks of the documentation, as the tests read them.

Above a block, an HTML comment may say what it is:

    <!-- file: jobs.py -->       the block is saved under that name instead of being run
    <!-- not run: the reason --> the block is left alone; reasons are counted and bounded
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUN = frozenset({"python", "sh", "console"})
SHOWN = frozenset({"sql", "toml", "text", "json", "mermaid", "ini"})
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[^\s`]*)[^`]*$")
FILE = re.compile(r"<!-- file: (?P<name>[\w./-]+) -->")
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+?) -->")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, what it holds, and what the comment above it says."""

    page: Path
    line: int
    language: str
    text: str
    file: str | None = None
    not_run: str | None = None

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """README.md and everything in docs/, except decisions: those are records of their day."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in found if "decisions" not in page.parts)]


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    found: list[Block] = []
    fence: tuple[str, str, int] | None = None
    comment, body = "", list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        opening = FENCE.match(line)
        if fence is None and opening:
            fence, body = (opening["language"], opening["indent"], number + 1), []
        elif fence is not None and line.strip() == "```":
            language, indent, start = fence
            text = "\n".join(part.removeprefix(indent) for part in body)
            named, left = FILE.search(comment), NOT_RUN.search(comment)
            found.append(
                Block(
                    page,
                    start,
                    language,
                    text,
                    file=named["name"] if named else None,
                    not_run=left["reason"] if left else None,
                )
            )
            fence, comment = None, ""
        elif fence is not None:
            body.append(line)
        elif line.strip():
            comment = line.strip() if line.strip().startswith("<!--") else ""
    if fence is not None:
        raise AssertionError(f"{page}:{fence[2]}: the block does not end")
    return found
