"""A trial: a copy of the tree, one line of it broken, the test that must notice run on it, and what that proves."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
NOT_FOR_US = re.compile(r"PYTHONDONTWRITEBYTECODE|PYTHONPYCACHEPREFIX|ROTA_TEST_.*")
"""A mutant's tree has the compiled files of the clean one; and which server the tests run on is no question here."""
COPIED = ("src", "tests", "pyproject.toml")
TEST_WITHIN = 60
"""Seconds for one test; a mutant that only hangs is not killed."""
WITHIN = 300
"""Seconds for all tests of one run."""

BROKEN = re.compile(
    r"\b(?:psycopg\.)?errors\.(?:SyntaxError|Undefined\w+|Ambiguous\w+|Duplicate(?:Alias|Column)|InvalidColumn\w+"
    r"|DatatypeMismatch|GroupingError|WrongObjectType)\b"
    r"|^E\s+(?:NameError|UnboundLocalError|ImportError|ModuleNotFoundError|SyntaxError|IndentationError)\b"
    r"|\b(?:NameError|UnboundLocalError): ",
    re.MULTILINE,
)
"""What a mutant leaves in the report that is no other behaviour, but no program at all."""


class Record(NamedTuple):
    """How one phase of one test ended, as mutant_watch.py wrote it down."""

    test: str
    when: str
    outcome: str
    error: str
    text: str


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    killed: bool
    why: str
    """Who killed it, or why it counts as alive."""
    seconds: float = 0.0


class Tree:
    """A copy of the project in a directory of its own. The project itself is never touched."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @classmethod
    def copied(cls, source: Path, place: Path) -> Tree:
        """With times and compiled files, so that only what is broken is compiled anew."""
        place.mkdir(parents=True)
        for name in COPIED:
            if (source / name).is_dir():
                shutil.copytree(source / name, place / name, symlinks=True)
            else:
                shutil.copy2(source / name, place / name)
        return cls(place)

    def break_line(self, mutant: Mutant) -> None:
        file = self.place / "src" / "rota" / mutant.file
        text = mutant.applied(file.read_text(encoding="utf-8"))
        if file.suffix == ".py":
            compile(text, str(file), "exec")
        file.write_text(text, encoding="utf-8")
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()  # its time may be the same second's

    def run(self, tests: Collection[str]) -> list[Record]:
        """Run these tests on this tree's code, in a process of their own."""
        records = self.place / f"records-{time.monotonic_ns()}"
        records.touch()
        around = {name: value for name, value in os.environ.items() if not NOT_FOR_US.fullmatch(name)}
        mine = {
            "PYTHONPATH": os.pathsep.join([str(self.place / "src"), str(Path(__file__).parent)]),
            "MUTANT_SOURCE": str(self.place / "src"),
            "MUTANT_RECORDS": str(records),
        }
        words = ["-pmutant_watch", "-pno:cacheprovider", f"--timeout={TEST_WITHIN}", "-q", "--no-header"]
        command = [sys.executable, "-m", "pytest", *words, *(f"tests/{test}" for test in sorted(tests))]
        process = subprocess.Popen(
            command,
            cwd=self.place,
            env=around | mine,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        said = _heard(process)
        found = [
            Record(**json.loads(line)) for line in records.read_text(encoding="utf-8").splitlines() if line
        ]
        if process.returncode not in (0, 1):
            last = "\n".join(said.splitlines()[-15:])
            found.append(Record("", "collect", "failed", f"pytest ended with {process.returncode}", last))
        return found


def tried(clean: Tree, mutant: Mutant, place: Path) -> Verdict:
    """Break one line in a copy of its own, and see who notices."""
    began = time.monotonic()
    tree = Tree.copied(clean.place, place)
    try:
        tree.break_line(mutant)
        records = tree.run([mutant.test])
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return judged(mutant, records)._replace(seconds=time.monotonic() - began)


def judged(mutant: Mutant, records: Iterable[Record]) -> Verdict:
    """A mutant is dead when the named test turned red by a claim of its own about what Rota does."""
    records = list(records)
    for record in records:
        if record.when == "collect":
            return Verdict(mutant, False, f"the test could not be run: {record.error}\n{record.text}")
    mine = [record for record in records if belongs(record, mutant.test)]
    red = [record for record in mine if record.outcome == "failed"]
    if not mine:
        return Verdict(mutant, False, f"{mutant.test} was not run")
    if not red:
        return Verdict(mutant, False, f"{mutant.test} still passes")
    for record in red:
        if broken := BROKEN.search(record.text):
            return Verdict(mutant, False, f"{mutant.test} met no program at all: {broken[0].strip()}")
    if not any(record.when == "call" and record.error == "assertion" for record in red):
        worst = red[0]
        return Verdict(mutant, False, f"{mutant.test} failed at {worst.when} by no claim: {worst.error}")
    return Verdict(mutant, True, mutant.by)


def belongs(record: Record, test: str) -> bool:
    """Whether a record is of this named test, or of one of its runs."""
    ran = record.test.removeprefix("tests/")
    return ran == test or ("[" not in test and ran.startswith(f"{test}["))


def troubles(tests: Iterable[str], records: Iterable[Record]) -> list[str]:
    """Why the clean copy is no measure: named tests that do not pass there."""
    records = list(records)
    found = [
        f"{record.test or 'pytest'} ({record.when}): {record.error}\n{record.text[-1500:]}"
        for record in records
        if record.outcome == "failed"
    ]
    found += [
        f"{test} does not pass there: it was skipped, or there is no such test"
        for test in tests
        if not any(record[1:3] == ("call", "passed") and belongs(record, test) for record in records)
    ]
    return found


def _heard(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=WITHIN)[0]
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        # As a person would stop it, so that it takes its servers down.
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=30)[0]
        process.kill()
        return process.communicate()[0]
