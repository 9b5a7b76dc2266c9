"""A page of the documentation, followed word by word in an empty directory by somebody with a fresh install."""

from __future__ import annotations

import contextlib
import doctest
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from docs_blocks import ROOT, Block

READER = Path(__file__).with_name("docs_reader.py")
BIN = Path(sys.executable).parent
PATIENCE = 60.0
LIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
OURS = re.compile(r"^(ROTA_|PG|DATABASE_URL$|WORKER_|CI$|PYTEST_)")


class Page:
    """Runs blocks; everything that they start ends with it."""

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="rota-docs-"))
        self.directory.chmod(0o755)  # a project directory as people have them, not a private one
        (self.directory / "examples").symlink_to(ROOT / "examples")  # what a checkout has
        self.log = (self.directory.parent / f"{self.directory.name}.log").open("w+")
        self.environment = {name: value for name, value in os.environ.items() if not OURS.match(name)}
        self.environment |= {"PATH": f"{BIN}:{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "200"}
        self.started: list[subprocess.Popen[str]] = []
        self.reader: subprocess.Popen[str] | None = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        if self.reader is not None and self.reader.stdin is not None:
            self.reader.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.reader.wait(10)
        for process in self.started:
            # A block may leave a worker behind (`rota worker jobs &`); it lives in the block's process group.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        if (self.directory / ".rota").exists():
            self._start(["rota", "db", "stop"]).wait(PATIENCE)
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        for pipe in (self.reader.stdout, self.reader.stdin) if self.reader else ():
            pipe and pipe.close()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)
        Path(self.log.name).unlink()

    def follow(self, block: Block) -> None:
        """Do what the block says, and fail if it does not work."""
        if block.file is not None:
            target = self.directory / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text + "\n")
        elif block.language == "python":
            self._python(block)
        elif block.language == "sh":
            self._shell(block, block.text)
        elif block.language == "console":
            self._console(block)

    def _start(self, command: list[str], **pipes: int) -> subprocess.Popen[str]:
        outlets = {"stdout": self.log, "stderr": self.log} | pipes
        process = subprocess.Popen(
            command,
            cwd=self.directory,
            env=self.environment,
            text=True,
            start_new_session=True,
            **outlets,  # type: ignore[call-overload]
        )
        self.started.append(process)
        return process

    def _python(self, block: Block) -> None:
        if self.reader is None:
            pipe = subprocess.PIPE
            self.reader = self._start([sys.executable, str(READER)], stdin=pipe, stdout=pipe)
        assert self.reader.stdin is not None
        assert self.reader.stdout is not None
        self.reader.stdin.write(json.dumps({"text": block.text, "place": block.place}) + "\n")
        self.reader.stdin.flush()
        ready, _, _ = select.select([self.reader.stdout], [], [], PATIENCE)
        answer = self.reader.stdout.readline() if ready else ""
        if not answer:
            raise AssertionError(
                f"{block.place}: no end within {PATIENCE:g} s, or Python is gone\n{self.tail()}"
            )
        if trouble := json.loads(answer)["trouble"]:
            raise AssertionError(f"{block.place} failed:\n{trouble}\n{self.tail()}")

    def _shell(self, block: Block, script: str) -> str:
        """Run a script, and give back what it printed. What it starts in the background goes on."""
        mark = self.log.seek(0, os.SEEK_END)
        process = self._start(["bash", "-euo", "pipefail", "-c", script], stdin=subprocess.DEVNULL)
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{block.place}: no end within {PATIENCE:g} s\n{self.tail()}") from None
        printed = self.tail(mark)
        if code:
            raise AssertionError(f"{block.place}: exit {code}\n{script}\n{printed}")
        return printed

    def _console(self, block: Block) -> None:
        """Lines with a `$` are typed; the lines below are what must appear, `...` standing for anything."""
        for command, wanted in exchanges(block.text):
            printed = self._shell(block, command)
            if wanted and not doctest.OutputChecker().check_output(wanted, printed, LIKE):
                raise AssertionError(f"{block.place}: $ {command}\nwanted:\n{wanted}\nprinted:\n{printed}")

    def tail(self, mark: int = 0) -> str:
        self.log.flush()
        with Path(self.log.name).open() as log:
            log.seek(mark)
            return log.read()[-8000:]


def exchanges(text: str) -> list[tuple[str, str]]:
    """A console block as pairs of what is typed and what is then shown."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (f"{found[-1][0]}\n{line}", "")
        elif found:
            found[-1] = (found[-1][0], found[-1][1] + line.replace("…", "...") + "\n")
        elif line.strip():
            raise AssertionError(f"a console block begins with a command, not with {line!r}")
    return found
