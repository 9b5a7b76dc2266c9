"""What every command shares: the options --url, --json and -v, examples in the help, and one event loop."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from rota.cli.output import Output

if TYPE_CHECKING:
    from pathlib import Path

    from rota.app import Rota
    from rota.config import Settings
    from rota.stores.contract import Store


@dataclass
class Call:
    """One call of the command line: what its shared options said."""

    url: str | None = None
    verbose: bool = False
    output: Output = field(default_factory=Output)
    if_stopped: str = "Stopped; nothing more was done."
    """What Ctrl-C has meant; empty where it is the usual way out."""

    def settings(self, **flags: Any) -> Settings:
        """The settings with this call's flags on top."""
        from rota.config import Settings

        return Settings.load(url=self.url, **flags)

    def open_store(self, app: Rota | None = None) -> Store:
        """The store that --url names, else the app's own, else the one of the settings."""
        from rota.stores.opening import open_store

        self.announce_starts()
        if app is not None and self.url is None:
            return app.store
        return open_store(None, self.settings())

    def open_running(self) -> Store:
        """The store of the settings as it is: an embedded server is neither made nor started for it."""
        from rota.stores.opening import open_running

        return open_running(self.settings())

    def announce_starts(self) -> None:
        """Say it before an embedded server is made: in a wrong directory, silence would look like an empty store."""
        from rota.stores.opening import Starting

        def tell(path: Path, new: bool) -> None:
            if new:
                self.output.words(f"No store here yet: making a new PostgreSQL in {path} …")
            elif sys.stderr.isatty():
                self.output.words(f"Starting PostgreSQL in {path} …")

        Starting.tell = tell


class Command(click.Command):
    """A command with the shared options, and with `examples` under its help."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        taken = {name for param in self.params for name in param.opts}
        self.params.extend(option for option in _shared() if not taken & set(option.opts))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A noun with its verbs; a mistyped verb is answered with the nearest one."""

    command_class = Command

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.params.extend(_shared())

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)  # as they were added: looking first, then acting

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}."
            raise click.UsageError(f"no command {name!r} in {ctx.command_path!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        write_examples(self.examples, formatter)


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def _shared() -> list[click.Option]:
    """The options that stand everywhere, before and after the verb; the last one said counts."""
    return [
        click.Option(
            ["--url"],
            metavar="URL",
            expose_value=False,
            callback=_take_url,
            help="The store: postgresql://…, embedded:, embedded:PATH. Else ROTA_URL, DATABASE_URL, rota.toml.",
        ),
        click.Option(
            ["--json", "as_json"], is_flag=True, expose_value=False, callback=_take_json, help="Print JSON."
        ),
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            callback=_take_verbose,
            help="Show more, and the traceback of an error.",
        ),
    ]


def _take_url(ctx: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        call_of(ctx).url = value


def _take_json(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        call_of(ctx).output.as_json = True


def _take_verbose(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        call_of(ctx).verbose = True


def call_of(ctx: click.Context) -> Call:
    return ctx.ensure_object(Call)


def with_call(command: Callable[..., None]) -> Callable[..., None]:
    """Give a plain command its call."""

    @functools.wraps(command)
    def started(**options: Any) -> None:
        command(call_of(click.get_current_context()), **options)

    return started


def with_store(
    command: Callable[..., Coroutine[Any, Any, None]], *, running: bool = False
) -> Callable[..., None]:
    """Give an async command its call and the store, which is closed whatever happens."""

    @functools.wraps(command)
    def started(**options: Any) -> None:
        import asyncio

        call = call_of(click.get_current_context())
        store = call.open_running() if running else call.open_store()

        async def run() -> None:
            try:
                await command(call, store, **options)
            finally:
                await store.close()

        asyncio.run(run())

    return started


def with_admin(
    command: Callable[..., Coroutine[Any, Any, None]], *, running: bool = False
) -> Callable[..., None]:
    """Give an async command its call and the admin service, under the name of who typed it.

    `running`: only of a store that runs; one that does not is an error, and is not started.
    """

    @functools.wraps(command)
    async def served(call: Call, store: Store, **options: Any) -> None:
        from rota.admin import Admin

        await command(call, Admin(store, actor=whoami()), **options)

    return with_store(served, running=running)


def with_running_admin(command: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Like `with_admin`, for commands that only look: they never make or start a server."""
    return with_admin(command, running=True)


def whoami() -> str:
    """Who gives the orders, for the audit: `ann@host`. ROTA_ACTOR says otherwise (deploy scripts, shared logins)."""
    given = os.environ.get("ROTA_ACTOR")
    if given:
        return given
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
