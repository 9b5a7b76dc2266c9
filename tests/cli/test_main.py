"""The command itself: light help, clear errors, exit codes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import click
import pytest

from rota.cli import exits
from rota.cli.commands import Call
from rota.cli.main import COMMANDS, root, run
from rota.errors import ConfigError, JobChanged, JobNotFound, MoveRefused, PayloadInvalid, StoreUnavailable

HEAVY = ("psycopg", "pydantic", "rich", "pydantic_core", "asyncio", "uuid_utils")


def loaded_by(*arguments: str) -> set[str]:
    code = "import sys; from rota.cli.commands import Call; from rota.cli.main import run; "
    code += f"run(Call(), {list(arguments)!r}); print('LOADED', [name for name in {HEAVY!r} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(eval(said.rpartition("LOADED ")[2]))


def test_help_loads_nothing_heavy():
    assert loaded_by("--help") == set()


def test_the_help_of_a_group_loads_no_database_driver_and_no_drawing():
    assert not loaded_by("jobs", "--help") & {"psycopg", "rich", "pydantic"}


def test_help_is_there_before_anybody_notices():
    def cost() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "rota.cli", "--help"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, and the best of five: other tests share this machine.
    assert min(cost() for _ in range(5)) < 0.15


def test_the_words_in_the_help_are_the_commands_own():
    for name, (_, _, words) in COMMANDS.items():
        command = root.get_command(click.Context(root), name)
        assert command.help.splitlines()[0] == words


def every_command(group=root, path=("rota",)):
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


@pytest.mark.parametrize(
    ("path", "command"),
    list(every_command()),
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_every_command_has_help_with_examples_and_the_shared_options(rota, path, command):
    said = rota(*path[1:], "--help")

    assert said.code == 0
    assert "Examples:" in said.out
    assert all(option in said.out for option in ("--url", "--json", "--verbose"))


def test_a_mistyped_command_is_answered_with_the_nearest_one(rota):
    said = rota("jbos", "list")

    assert (said.code, said.out) == (2, "")
    assert "no command 'jbos' in 'rota'; did you mean 'jobs'?" in said.err


def test_a_command_that_resembles_none_is_answered_with_all(rota):
    said = rota("jobs", "xyzzy")

    assert said.code == 2
    assert (
        "no command 'xyzzy' in 'rota jobs'; "
        "there are list, show, why, logs, debug, edit, retry, cancel, hold, release, fail, kill, delete."
        in said.err
    )


def test_a_mistyped_option_is_a_usage_error(rota):
    said = rota("jobs", "list", "--sate", "dead")

    assert said.code == 2
    assert "--sate" in said.err


def test_without_a_command_the_help_is_shown(rota):
    said = rota()

    assert said.code == 2
    assert "Daily work" in said.err


def test_the_version_is_told(rota):
    assert rota("--version").out.startswith("rota 0.")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreUnavailable("gone"), 3),
        (JobNotFound("1"), 4),
        (ConfigError("bad"), 2),
        (PayloadInvalid("bad"), 2),
        (MoveRefused("1", "dead", "hold", "No."), 1),
        (JobChanged("1", "held"), 1),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error, code):
    assert exits.code_of(error) == code


def test_a_database_that_cannot_be_reached_is_exit_3_with_one_readable_block(rota):
    said = rota("jobs", "list", "--url", "postgresql://nobody:secret@127.0.0.1:1/none")

    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("rota: ")
    assert "127.0.0.1" in said.err
    assert "secret" not in said.err
    assert "Traceback" not in said.err


def test_the_traceback_is_shown_only_when_asked_for(rota):
    said = rota("jobs", "list", "-v", "--url", "postgresql://nobody:secret@127.0.0.1:1/none")

    assert said.code == 3
    assert "Traceback (most recent call last)" in said.err


def test_an_address_of_another_kind_is_a_usage_error(rota):
    said = rota("jobs", "list", "--url", "postgress://host/db")

    assert said.code == 2
    assert "is not one that Rota can open. Did you mean postgres://?" in said.err


def test_a_database_without_the_schema_says_which_command_to_run(rota, bare):
    said = rota("jobs", "list", "--url", bare)

    assert said.code == 1
    assert "has no Rota schema yet" in said.err
    assert "Run `rota migrate`." in said.err


def test_shared_options_may_stand_before_the_verb(rota, jobs):
    job_id = jobs.add()

    said = rota("--json", "jobs", "list")

    assert f'"id": "{job_id}"' in said.out


def test_an_unexpected_error_names_its_place_and_the_way_to_more(capsys, monkeypatch):
    monkeypatch.setattr("rota.cli.commands.Call.settings", lambda self: 1 // 0)

    code = run(Call(), ["config"])

    said = capsys.readouterr().err
    assert code == 1
    assert "rota: ZeroDivisionError: " in said
    assert "test_main.py, line " in said
    assert "run it again with -v for the traceback" in said


def test_an_interrupt_is_exit_130_without_a_traceback(capsys, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr("rota.cli.commands.Call.settings", interrupted)

    assert run(Call(), ["config"]) == 130
    assert capsys.readouterr().err.strip() == "Stopped; nothing more was done."


def test_a_reader_that_leaves_early_is_no_error(jobs):
    jobs.add()
    read, write = os.pipe()
    os.close(read)

    said = subprocess.run(
        [sys.executable, "-m", "rota.cli", "jobs", "list"], stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)

    assert (said.returncode, said.stderr) == (0, b"")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_the_script_that_completes_commands(shell, capsys):
    assert run(Call(), ["completion", shell]) == 0
    assert "_ROTA_COMPLETE" in capsys.readouterr().out


def test_a_shell_that_asks_is_told_the_commands():
    asked = {**os.environ, "_ROTA_COMPLETE": "bash_complete", "COMP_WORDS": "rota work", "COMP_CWORD": "1"}
    said = subprocess.run([sys.executable, "-m", "rota.cli"], capture_output=True, text=True, env=asked)

    assert said.stdout.split() == ["plain,worker", "plain,workers"]


def test_the_help_of_no_command_loads_what_only_its_work_needs():
    """Each of these costs a tenth of a second, and somebody who asks for help waits for it."""
    code = """if True:
        import sys, click
        from rota.cli.main import root

        def walk(group):
            for name in group.list_commands(click.Context(group)):
                command = group.get_command(click.Context(group), name)
                command.get_help(click.Context(command))
                if isinstance(command, click.Group):
                    walk(command)

        walk(root)
        print([name for name in WORK if name in sys.modules])
    """
    work = (
        "rota.admin",
        "rota.stores.contract",
        "rota.app",
        "rota.worker",
        "rota.web",
        "psycopg",
        "pydantic",
        "rich",
    )
    code = code.replace("WORK", repr(work))

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
