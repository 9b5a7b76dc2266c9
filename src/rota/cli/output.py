"""The only module that prints. Values go to stdout, words to stderr; rich draws only where a person looks."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

from rota.cli.exits import ReaderGone, Wrong
from rota.cli.words import as_json, cell, clean

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {
    "running": "cyan",
    "cancelling": "yellow",
    "completed": "green",
    "partial": "yellow",
    "dead": "bold red",
    "retrying": "yellow",
    "scheduled": "blue",
    "snoozed": "blue",
    "parked": "magenta",
    "held": "magenta",
    "cancelled": "dim",
    "ok": "green",
    "warn": "yellow",
    "bad": "bold red",
}
PLAIN_EVERY = 10.0


class Advance(Protocol):
    """Moves a progress bar: how far it is now, what it is worth knowing besides, and a whole that has changed."""

    def __call__(self, done: int, note: str = "", *, total: int | None = None) -> None: ...


class Output:
    """Where one command's values and words go: a terminal, a pipe, or JSON."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    @property
    def terminal(self) -> bool:
        """Whether a person reads stdout."""
        return not self.as_json and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def words(self, text: str = "") -> None:
        """Tell the person something; never part of the values."""
        click.echo(clean(text), err=True)

    def text(self, text: str) -> None:
        """Values that are text by nature: SQL, a path, a JSON result."""
        _put(text)

    def value(self, value: Any) -> None:
        """One JSON value on stdout."""
        _put(as_json(value))

    def table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        records: Sequence[Mapping[str, Any]],
        shown: Sequence[Sequence[str]] | None = None,
        title: str | None = None,
    ) -> None:
        """Many things alike: `records` as JSON, `rows` tab-separated in a pipe, `shown` (else the rows) as a table."""
        if self.as_json:
            self.value(list(records))
        elif self.terminal:
            self._draw(headers, [[cell(value) for value in row] for row in (shown or rows)], title)
        else:
            for row in rows:
                _put("\t".join(cell(value) for value in row))

    def columns(self, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A small report that people read in a pipe too: a table on a terminal, aligned columns elsewhere."""
        if self.terminal:
            self._draw(headers, [[cell(value) for value in row] for row in rows], None)
            return
        lines = [list(headers), *([cell(value) for value in row] for row in rows)]
        widths = [max(len(line[place]) for line in lines) for place in range(len(headers))]
        for line in lines:
            _put("  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip())

    def fields(self, pairs: Sequence[tuple[str, object]], *, shown: Mapping[str, str] | None = None) -> None:
        """One thing and its parts, a line each; parts without a value are left out on a terminal."""
        if not self.terminal:
            for name, value in pairs:
                _put(f"{name}\t{cell(value)}")
            return
        present = [(name, (shown or {}).get(name) or cell(value)) for name, value in pairs if cell(value)]
        width = max((len(name) for name, _ in present), default=0)
        console = self.console()
        for name, value in present:
            console.print(_text(f"{name:<{width}}  ", "dim"), _text(value, STYLES.get(value, "")), sep="")

    def styled(self, label: str, text: str, style: str) -> None:
        """One line of a picture: a dim label and text in one style; the same characters without colours in a pipe."""
        if self.terminal:
            self.console().print(_text(label, "dim"), _text(text, style), sep="", soft_wrap=True)
        else:
            _put((label + text).rstrip())

    def width(self) -> int:
        """How many columns a picture may have: the terminal's, COLUMNS, or 80 in a pipe."""
        if self.terminal:
            return self.console().width
        given = os.environ.get("COLUMNS", "")
        return int(given) if given.isdigit() and int(given) else 80

    def shows(self, characters: str) -> bool:
        """Whether stdout can be given these characters."""
        try:
            characters.encode(sys.stdout.encoding or "ascii")
        except UnicodeEncodeError:
            return False
        return True

    def heading(self, text: str) -> None:
        """A part's name, between blocks, for people only."""
        if self.terminal:
            self.console().print(_text("\n" + text, "bold"))

    def block(self, text: str, *, name: str, piped: bool = False) -> None:
        """Several lines of stored text (a stack, a payload), indented under their name; `piped`: in a pipe too."""
        if piped and not self.terminal:
            _put("\n".join((name, *("  " + line for line in clean(text).splitlines()))))
        elif self.terminal:
            self.heading(name)
            for line in clean(text).splitlines():
                self.console().print(_text("  " + line, ""), soft_wrap=True)

    def console(self, *, stderr: bool = False) -> Console:
        """A rich console that takes every text as it is: no markup, no guessing."""
        from rich.console import Console

        return Console(stderr=stderr, markup=False, highlight=False, emoji=False)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before something that cannot be undone. Without a person to ask, `--yes` must have been said."""
        if yes:
            return
        if not sys.stdin.isatty():
            raise Wrong(
                f"{question} Nobody can answer that here: add --yes to do it, or --dry-run to see what it would do."
            )
        if not click.confirm(clean(question), err=True):
            raise click.Abort

    def ask(self, question: str) -> str:
        """What a person types. Without a person to ask, `--yes` must have been said."""
        if not sys.stdin.isatty():
            raise Wrong(
                f"{question}. Nobody can answer that here: add --yes to do it, or --dry-run to see what it would do."
            )
        typed: str = click.prompt(clean(question), err=True)
        return typed

    @contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Advance]:
        """Show how far something is: a bar where a person looks, a line every ten seconds elsewhere."""
        if sys.stderr.isatty() and not self.as_json:
            with self._bar(what, total) as advance:
                yield advance
        else:
            yield _Lines(what, total)

    @contextmanager
    def _bar(self, what: str, total: int | None) -> Iterator[Advance]:
        from rich import progress as bars

        columns = (
            bars.SpinnerColumn(),
            bars.TextColumn("{task.description}", markup=False),
            bars.BarColumn(),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[rate]}", markup=False),
            bars.TimeElapsedColumn(),
            bars.TimeRemainingColumn(),
            bars.TextColumn("{task.fields[note]}", markup=False),
        )
        began = time.monotonic()
        with bars.Progress(*columns, console=self.console(stderr=True), transient=True) as shown:
            bar = shown.add_task(clean(what), total=total, note="", rate="")

            def advance(done: int, note: str = "", *, total: int | None = None) -> None:
                shown.update(
                    bar, completed=done, note=clean(note), rate=_rate(done, time.monotonic() - began)
                )
                if total is not None:
                    shown.update(bar, total=total)

            yield advance

    def _draw(self, headers: Sequence[str], rows: Sequence[Sequence[str]], title: str | None) -> None:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
        for place, header in enumerate(headers):
            # The first column is what people copy into the next command: it is never broken.
            table.add_column(header, no_wrap=place == 0, overflow="fold")
        for row in rows:
            table.add_row(*(_text(value, STYLES.get(value, "")) for value in row))
        self.console().print(table)


class _Lines:
    """Progress for a log: said at most every ten seconds, so that a pipe does not fill up."""

    def __init__(self, what: str, total: int | None) -> None:
        self.what, self.total = what, total
        self.began = time.monotonic()
        self.next_at = self.began + PLAIN_EVERY

    def __call__(self, done: int, note: str = "", *, total: int | None = None) -> None:
        self.total = self.total if total is None else total
        if time.monotonic() < self.next_at:
            return
        self.next_at = time.monotonic() + PLAIN_EVERY
        of = f" of {self.total:,}" if self.total is not None else ""
        rate = _rate(done, time.monotonic() - self.began)
        parts = (f"{self.what}: {done:,}{of}", f"({rate})" if rate else "", note)
        click.echo(clean(" ".join(filter(None, parts))), err=True)


def _rate(done: int, passed: float) -> str:
    """`120/s`, once there is enough to tell."""
    if not done or passed < 0.5:
        return ""
    rate = done / passed
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


def _put(text: str) -> None:
    """One value on stdout."""
    try:
        click.echo(text)
    except BrokenPipeError as error:
        raise ReaderGone from error


def _text(value: str, style: str) -> Any:
    from rich.text import Text

    return Text(value, style=style)
