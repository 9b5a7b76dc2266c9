"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

JOBS = """
from rota import Rota

app = Rota()


@app.task
async def greet(name: str) -> str:
    return f"Hello, {name}!"
"""


@pytest.fixture
def project(tmp_path):
    """An empty project with an app in jobs.py. Calling it runs pytest there, with our plugin and pytest-asyncio."""
    (tmp_path / "jobs.py").write_text(JOBS)

    def run(tests: str, *options: str, code: int = 0, **files: str) -> str:
        (tmp_path / "test_it.py").write_text(tests)
        for name, text in files.items():
            (tmp_path / name.replace("_dot_", ".")).write_text(text)
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("ROTA_", "PYTEST_"))
        }
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(tmp_path)}
        plugins = ["-p", "rota.testing.plugin", "-p", "pytest_asyncio.plugin"]
        plugins += ["-o", "asyncio_default_fixture_loop_scope=function"]  # unset, it warns
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, "-q", "-W", "error", *options],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


INI = "[pytest]\nrota_app = jobs:app\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
TESTS = """
import pytest
from jobs import greet

async def test_by_default_jobs_wait(rota_testing):
    handle = await greet.enqueue("Ann")
    rota_testing.assert_enqueued(greet, {"name": "Ann"}, state="pending")
    await rota_testing.drain()
    assert await handle == "Hello, Ann!"

def test_each_test_begins_with_nothing(rota_testing):
    rota_testing.assert_not_enqueued()
    greet.enqueue_sync("Bob")
    assert len(rota_testing.drain_sync()) == 1

@pytest.mark.rota("inline")
async def test_a_mark_chooses_the_mode(rota_testing, rota_app):
    assert rota_testing.mode == "inline"
    handle = await greet.enqueue("Ann")
    assert rota_testing.job(handle).state == "completed"
    assert rota_app is greet.home

@pytest.mark.rota(mode="manual", slots=3)
def test_a_mark_has_options(rota_testing):
    assert rota_testing.slots == 3
"""


def test_the_fixture_works_in_both_kinds_of_tests_and_marks_choose_the_mode(project):
    assert "4 passed" in project(TESTS, "--strict-markers", pytest_dot_ini=INI)


def test_the_mode_of_all_tests_can_be_chosen_and_a_mark_still_wins(project, fresh_database):
    tests = """
def test_mode(rota_testing, request):
    assert rota_testing.mode == request.config.getoption("--rota-mode")

def test_again(rota_testing):
    rota_testing.assert_not_enqueued()
"""
    assert "2 passed" in project(tests, "--rota-mode=inline", pytest_dot_ini=INI)
    assert "2 passed" in project(
        tests, "--rota-mode=real", f"--rota-url={fresh_database}", pytest_dot_ini=INI
    )


def test_real_jobs_run_in_both_kinds_of_tests(project, fresh_database):
    tests = """
import pytest
from jobs import greet

pytestmark = pytest.mark.rota("real")

async def test_async(rota_testing):
    assert await (await greet.using(key="k").enqueue("Ann")) == "Hello, Ann!"

def test_sync(rota_testing):
    assert greet.using(key="k").enqueue_sync("Bob").result_sync("20s") == "Hello, Bob!"
"""
    assert "2 passed" in project(tests, f"--rota-url={fresh_database}", pytest_dot_ini=INI)


def test_the_app_is_found_by_a_fixture_of_the_project_by_rota_toml_or_not_at_all(project):
    tests = "def test_it(rota_app):\n    assert 'greet' in rota_app.tasks\n"
    fixture = (
        "import pytest, jobs\n\n@pytest.fixture(scope='session')\ndef rota_app():\n    return jobs.app\n"
    )

    told = project(tests, code=1)
    assert "the fixture rota_app does not know which app to test" in told
    assert "def rota_app():" in told
    assert "1 passed" in project(tests, rota_dot_toml='app = "jobs.py"\n')
    assert "1 passed" in project(tests, conftest_dot_py=fixture, rota_dot_toml="")


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("nowhere:app", "there is no module 'nowhere'"),
        ("jobs:nobody", "'nobody' of jobs is no Rota app"),
        ("json", "json has 0 apps; name the attribute"),
    ],
)
def test_an_app_that_is_not_there_is_said_to_be_so(project, name, trouble):
    tests = "def test_it(rota_app): ...\n"

    assert trouble in project(tests, code=1, pytest_dot_ini=f"[pytest]\nrota_app = {name}\n")


def test_a_mode_that_is_none_is_refused(project):
    tests = "import pytest\n\n@pytest.mark.rota('quick')\ndef test_it(rota_testing): ...\n"

    assert "the mode 'quick' of rota_testing is none of manual, inline, real" in project(
        tests, code=1, pytest_dot_ini=INI
    )


def test_a_run_that_does_not_use_it_loads_nothing_of_rota_but_the_plugin(project):
    tests = """
import sys

def test_it():
    loaded = {name for name in sys.modules if name.split(".")[0] in {"rota", "psycopg", "pydantic", "click", "rich"}}
    assert loaded == {"rota", "rota.testing", "rota.testing.plugin"}
"""
    assert "1 passed" in project(tests)


def test_pytest_finds_the_plugin_by_its_entry_point():
    """Asked of the sources: an environment that was made before knows it after its next install."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]

    assert project["entry-points"]["pytest11"] == {"rota": "rota.testing.plugin"}
