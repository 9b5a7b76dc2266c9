"""`rota completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click

from rota.cli.commands import Call, Command, with_call

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    cls=Command,
    examples=(
        'eval "$(rota completion bash)"               for this shell; into ~/.bashrc for every one',
        'eval "$(rota completion zsh)"                ~/.zshrc',
        "rota completion fish > ~/.config/fish/completions/rota.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@with_call
def completion(call: Call, shell: str) -> None:
    """Print the script that completes commands in your shell."""
    from click.shell_completion import get_completion_class

    from rota.cli.main import root

    kind = get_completion_class(shell)
    assert kind is not None
    # Its text alone: what click adds for bash is a warning about versions that are fifteen years old.
    script = kind(root, {}, "rota", "_ROTA_COMPLETE")
    call.output.text((script.source_template % script.source_vars()).strip())
