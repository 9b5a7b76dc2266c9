"""`rota init`: the first files of an app, which work as they are."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from rota.cli.commands import Call, Command, with_call
from rota.cli.exits import Refused

FILES = ("jobs.py", "rota.toml", "test_jobs.py")
NEXT = """
Next:
  rota dev                                  run the worker; it restarts when you save
  rota enqueue greet name=Ann --wait        in another terminal: run one job
  pip install pytest && pytest              the tests of your tasks
"""


@click.command(
    "init",
    cls=Command,
    examples=("rota init", "rota init --fastapi", "rota init --dir services/mail --force"),
)
@click.option("--fastapi", is_flag=True, help="Also write web.py, a FastAPI app that enqueues.")
@click.option(
    "--dir", "directory", default=".", type=click.Path(file_okay=False), help="Where; made if need be."
)
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
@with_call
def init(call: Call, fastapi: bool, directory: str, force: bool) -> None:
    """Write a first app: jobs.py, rota.toml and a test."""
    place = Path(directory)
    names = (*FILES, "web.py") if fastapi else FILES
    there = [name for name in names if (place / name).exists()]
    if there and not force:
        raise Refused(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} in {place.resolve()} already; nothing was "
            "written. Choose another place with --dir, or overwrite with --force."
        )
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            (place / name).write_text(
                files("rota.cli").joinpath("templates", f"{name}.txt").read_text(encoding="utf-8")
            )
    except OSError as error:
        raise Refused(
            f"{error.filename or place} cannot be written: {error.strerror or error}. "
            "Choose another place with --dir, or run it as a user who may write there."
        ) from error
    written = [str(place / name) for name in names]
    call.output.table(
        ("written",), [(path,) for path in written], records=[{"written": path} for path in written]
    )
    call.output.words(NEXT)
