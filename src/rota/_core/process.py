"""Process: how a task's child processes are bounded, and what they see of the worker's environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from rota._core.durations import Duration, seconds
from rota.errors import TaskError

PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP",
    "VIRTUAL_ENV", "PYTHONUTF8", "PYTHONIOENCODING", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX",
    "PYTHONHOME", "PYTHONHASHSEED", "PYTHONWARNINGS", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "ROTA_ENV",
)  # fmt: skip
"""What a child sees of the environment unless its task asks for more: nothing that is usually a secret."""

EXECUTORS = {"aio": True, "thread": False, "process": None}
"""Where a handler runs, and whether it must be async for that (None: as it likes)."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """Bounds of a child process: `@app.task(executor=Process(memory="1GB", env=["S3_*"]))`.

    `executor="process"` is the same as `executor=Process()`.
    """

    memory: int | str | None = None
    """Bytes of its own memory that a child may take, as a number or a text such as "512MB". None: no limit, but when
    the machine runs out of memory, the system ends the child before the worker."""
    cpu: Duration | None = None
    """Processor time that one job may use. None: only the task's timeout counts."""
    files: int = 1024
    """How many files a child may have open."""
    processes: int | None = None
    """How many processes the child's user may have, all programs taken together."""
    env: Iterable[str] = ()
    """Variables of the worker's environment that a child sees besides the usual ones; `AWS_*` and `*` work too."""
    umask: int = 0o077
    """Which rights the files of a child do not get: by default all rights of everybody but its own user."""
    jobs: int = 100
    """After so many jobs a child is replaced by a fresh one."""

    def __post_init__(self) -> None:
        if isinstance(self.env, str):
            raise TypeError(f"Process(env={self.env!r}): give a list of names, such as env=[{self.env!r}].")
        if not 0 <= self.umask <= 0o777:
            raise ValueError(
                f"Process(umask={self.umask!r}): give rights from 0 to 0o777, such as umask=0o022."
            )
        if self.jobs < 1:
            raise ValueError(f"Process(jobs={self.jobs}): a child must be good for one job at least.")
        if self.files < 64:
            raise ValueError(f"Process(files={self.files}): Python itself needs about 64; give more.")
        if self.processes is not None and self.processes < 1:
            raise ValueError(
                f"Process(processes={self.processes}): give at least 1, or leave it out for no limit."
            )
        object.__setattr__(self, "memory", None if self.memory is None else size(self.memory, "memory"))
        object.__setattr__(self, "cpu", None if self.cpu is None else seconds(self.cpu, "cpu"))
        object.__setattr__(self, "env", tuple(dict.fromkeys(self.env)))

    def environment(self, around: Mapping[str, str]) -> dict[str, str]:
        """What a child sees of the worker's environment."""
        wanted = (*PASSED_ON, *self.env)
        return {name: value for name, value in around.items() if any(fnmatchcase(name, w) for w in wanted)}

    def limits(self) -> dict[str, float | None]:
        """The bounds as plain values, for the child that sets them on itself."""
        memory, cpu = self.memory, self.cpu
        assert not isinstance(memory, str)
        assert cpu is None or isinstance(cpu, float)
        return {
            "memory": memory,
            "cpu": cpu,
            "files": self.files,
            "processes": self.processes,
            "umask": self.umask,
        }


def size(given: int | str, what: str = "size") -> int:
    """A number of bytes: 1048576, "512MB", "1.5 GB" (of 1024)."""
    if isinstance(given, bool) or not isinstance(given, (int, str)):
        raise TypeError(f'{what} must be a number of bytes or a text such as "512MB", not {given!r}.')
    if isinstance(given, int):
        value = given
    else:
        found = _SIZE.fullmatch(given.strip())
        if found is None:
            raise ValueError(
                f'{what} {given!r} is not understood; write it like "512MB", "2GB" or a number of bytes.'
            )
        value = int(float(found[1]) * _UNITS[found[2].lower()])
    if value < 1024**2:
        raise ValueError(f"{what} must be at least 1 MB, not {given!r}.")
    return value


def executor_of(
    task: str, fn: Callable[..., Any], given: str | Process | None, *, is_async: bool
) -> tuple[str | None, Process | None]:
    """Check where a task wants to run: the executor's name, and the bounds of its child processes if it has any."""
    if given is None:
        return None, None
    if isinstance(given, Process) or given == "process":
        qualname = getattr(fn, "__qualname__", "")
        if "<locals>" in qualname:
            raise TaskError(
                f"task {task!r}: executor='process' needs a function at the top of a module, and {qualname} is inside "
                "another: a fresh process could not import it. Move it out."
            )
        return "process", given if isinstance(given, Process) else Process()
    if given not in EXECUTORS:
        raise TaskError(
            f"task {task!r}: executor={given!r} is not known. Use one of {', '.join(EXECUTORS)}, or none."
        )
    if EXECUTORS[given] is not is_async:
        needed = "async def" if EXECUTORS[given] else "def"
        raise TaskError(f"task {task!r}: executor={given!r} needs a function made with `{needed}`.")
    return given, None
