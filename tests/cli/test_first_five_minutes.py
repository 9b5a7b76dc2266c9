"""The first five minutes of somebody who has never seen Rota: a clean environment, an empty folder, and the clock."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"Dashboard: (http://127\.0\.0\.1:\d+)(/login\?key=[\w-]+)")
JOBS = """\
from rota import Retry, Rota

app = Rota()


@app.task(retry=Retry(attempts=5, base=1))
def thumbnails(folder: str, count: int = 100) -> dict[str, int]:
    return {"made": count}


@app.schedule("30 2 * * *", tz="Europe/Berlin")
def nightly() -> None: ...
"""


class Newcomer:
    """Somebody with an empty folder, a plain shell, and what `pip install` gave him."""

    def __init__(self, folder: Path, bin_dir: Path, home: Path) -> None:
        self.folder, self._bin = folder, bin_dir
        kept = ("PATH", "LANG", "TMPDIR")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {
            "HOME": str(home),
            "PYTHONUNBUFFERED": "1",
            "PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}",
        }

    def types(self, *words: str, **env: str) -> str:
        """A command that ends; what it says."""
        done = subprocess.run(
            [self._bin / words[0], *words[1:]], cwd=self.folder, env=self.env | env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    @contextmanager
    def leaves_running(self, *words: str, **env: str) -> Iterator[Callable[[], str]]:
        """A command that stays; how to see what it said so far. Ctrl-C ends it, and it says nothing bad of that."""
        log = self.folder / f"{words[1]}-{time.monotonic_ns()}.log"
        screen, theirs = pty.openpty()  # for what it shows; words go to the other stream
        threading.Thread(target=drained, args=(screen,), daemon=True).start()
        with log.open("w") as out:
            process = subprocess.Popen(
                [self._bin / words[0], *words[1:]], cwd=self.folder, env=self.env | env, stdout=theirs, stderr=out,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        os.close(theirs)
        try:
            yield log.read_text
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(30)
            assert "Traceback" not in log.read_text()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def drained(screen: int) -> None:
    """Look at a terminal until its program has gone."""
    with suppress(OSError):
        while os.read(screen, 65_536):
            pass
    os.close(screen)


def eventually(truth: Callable[[], object], within: float = 30.0) -> object:
    end = time.monotonic() + within
    while not (found := truth()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment, in which nothing but the wheel was installed."""
    place = tmp_path_factory.mktemp("newcomer")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place / "dist"], cwd=ROOT, check=True,
        capture_output=True,
    )  # fmt: skip
    venv.create(place / "venv", with_pip=True)
    [wheel] = (place / "dist").iterdir()
    pip = [place / "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(pip, check=True, capture_output=True)
    return place / "venv" / "bin"


@pytest.fixture
def newcomer(installed: Path, tmp_path: Path) -> Iterator[Newcomer]:
    folder = tmp_path / "shop"
    folder.mkdir()
    somebody = Newcomer(folder, installed, tmp_path)
    yield somebody
    if (folder / ".rota").exists():
        somebody.types("rota", "db", "stop")
    shutil.rmtree(tmp_path / ".local", ignore_errors=True)


@contextmanager
def opened(said: str) -> Iterator[tuple[httpx.Client, str]]:
    """A browser that followed the link, and where the pages are."""
    found = LINK.search(said)
    assert found is not None, said
    headers = {"accept": "text/html", "sec-fetch-site": "same-origin"}
    with httpx.Client(follow_redirects=True, headers=headers, trust_env=False) as browser:
        assert browser.get("".join(found.groups())).status_code == 200
        yield browser, found[1]


def test_the_demo_is_there_within_fifteen_seconds_and_a_failure_is_mended_by_a_click(newcomer):
    began = time.monotonic()
    with newcomer.leaves_running("rota", "demo", "--no-browser") as said:
        eventually(lambda: LINK.search(said()), 15)
        with opened(said()) as (browser, base):
            page = browser.get(f"{base}/")
            assert time.monotonic() - began < 15
            assert re.search(r"PostgreSQL 1\d(\.\d+)? is ready", said())
            assert re.search(r"Worker: \d+ slots", said())
            assert 'id="throughput"' in page.text
            group = eventually(
                lambda: re.search(r'href="(/failures/[0-9a-f]+)"', browser.get(f"{base}/").text), 20
            )[1]
            trace = browser.get(f"{base}{group}")
            assert "is not a feed: no &lt;rss&gt; element" in trace.text
            job = re.search(r'href="(/jobs/[^"/?]+)"', trace.text)[1]
            assert re.search(
                r"In your code:</span> <code>cli/tour.py:\d+ in import_feed", browser.get(f"{base}{job}").text
            )
            retried = browser.post(f"{base}{job}/retry", data={})

            assert retried.status_code == 200
            assert "was dead and runs again." in retried.text
            eventually(lambda: "3 new entries" in browser.get(f"{base}{job}?tab=result").text)


def test_his_own_job_runs_is_broken_by_a_save_and_mended_by_the_next(newcomer):
    (newcomer.folder / "jobs.py").write_text(JOBS)
    with newcomer.leaves_running("rota", "dev", "jobs.py") as said:
        eventually(lambda: "worker started" in said() and LINK.search(said()))
        assert "Found 1 task, 1 schedule." in said()
        first = newcomer.types("rota", "enqueue", "thumbnails", "folder=photos", "--wait")
        assert json.loads(first[first.index("{") :]) == {"made": 100}

        (newcomer.folder / "jobs.py").write_text(
            JOBS.replace('return {"made"', 'return {"made": nothing} or {"made"')
        )
        eventually(lambda: said().count("worker started") == 2)
        newcomer.types("rota", "enqueue", "thumbnails", "folder=broken")
        eventually(lambda: "attempt 2 of 5" in said())
        (newcomer.folder / "jobs.py").write_text(JOBS)
        eventually(lambda: said().count("worker started") == 3)
        with opened(said()) as (browser, base):
            eventually(
                lambda: browser.get(f"{base}/jobs?filter=state:completed").text.count("<tr data-row") == 2
            )

        told = newcomer.types("rota", "schedules", "next")
        assert told.count("nightly") >= 5
        assert "02:30" in told
        doctor = newcomer.types("rota", "doctor")
        assert "All is well." in doctor
        assert "rota worker --health-port 8081" in doctor


def test_one_variable_moves_the_same_code_to_a_server(newcomer, bare):
    (newcomer.folder / "jobs.py").write_text(JOBS)
    newcomer.types("rota", "migrate", DATABASE_URL=bare)
    with newcomer.leaves_running("rota", "worker", "jobs.py", DATABASE_URL=bare) as said:
        eventually(lambda: "worker started" in said())
        first = newcomer.types("rota", "enqueue", "thumbnails", "folder=photos", "--wait", DATABASE_URL=bare)

        assert json.loads(first[first.index("{") :]) == {"made": 100}
    assert not (newcomer.folder / ".rota").exists()
