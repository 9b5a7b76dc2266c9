"""Every example of the documentation works as it stands: the pages are followed for real, block by block."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs_blocks import ROOT, RUN, SHOWN, blocks, pages
from docs_page import Page, exchanges

NOT_RUN_AT_MOST = 6


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_can_be_followed_word_by_word(page: Path):
    with Page() as reader:
        for block in blocks(page):
            if block.not_run is None:
                reader.follow(block)


def test_every_block_says_what_it_is():
    nameless = [
        block.place for page in pages() for block in blocks(page) if block.language not in RUN | SHOWN
    ]

    assert nameless == []


def test_hardly_any_block_is_left_out_and_each_for_a_reason():
    left = [block for page in pages() for block in blocks(page) if block.not_run is not None]

    assert len(left) <= NOT_RUN_AT_MOST, [block.place for block in left]
    assert [block.place for block in left if len((block.not_run or "").split()) < 3] == []


def test_what_only_shows_code_is_not_code_that_should_run():
    """A Python or shell example cannot hide from the tests behind another name."""
    hidden = [
        block.place
        for page in pages()
        for block in blocks(page)
        if block.language in SHOWN and block.text.lstrip().startswith(("$ ", "rota ", "from rota", "import "))
    ]

    assert hidden == []


def test_blocks_are_read_with_the_comments_above_them(tmp_path):
    page = tmp_path / "example.md"
    page.write_text(
        "Text.\n\n<!-- file: jobs.py -->\n```python\nx = 1\n```\n\n<!-- not run: needs a real server -->\n"
        "```sh\nrota worker\n```\n\n- item\n\n  ```text\n  indented\n  ```\n"
    )

    first, second, third = blocks(page)

    assert (first.language, first.text, first.file, first.not_run) == ("python", "x = 1", "jobs.py", None)
    assert (second.line, second.not_run) == (10, "needs a real server")
    assert (third.text, third.file) == ("indented", None)


def test_a_console_block_is_typed_line_by_line():
    assert exchanges("$ rota a \\\n  b\n$ rota c\none …\ntwo\n") == [
        ("rota a \\\n  b", ""),
        ("rota c", "one ...\ntwo\n"),
    ]


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("```python\nawait nothing()\n```", "NameError"),
        ("```sh\nfalse\n```", "exit 1"),
        ("```console\n$ echo yes\nno\n```", "wanted:\nno"),
    ],
)
def test_a_block_that_does_not_work_is_found(tmp_path, monkeypatch, text, trouble):
    monkeypatch.setattr("docs_blocks.ROOT", tmp_path)
    page = tmp_path / "example.md"
    page.write_text(text)

    [block] = blocks(page)

    with Page() as reader, pytest.raises(AssertionError, match=trouble):
        reader.follow(block)


def test_names_files_and_background_work_carry_over_within_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr("docs_blocks.ROOT", tmp_path)
    page = tmp_path / "example.md"
    page.write_text(
        "<!-- file: jobs.py -->\n```python\nANSWER = 42\n```\n"
        "```python\nimport asyncio\nfrom jobs import ANSWER\nawait asyncio.sleep(0)\n```\n"
        "```sh\nsleep 60 &\n```\n"
        "```python\nassert ANSWER == 42\n```\n"
        "```console\n$ cat jobs.py\nANSWER = …\n```\n"
    )

    with Page() as reader:
        for block in blocks(page):
            reader.follow(block)
