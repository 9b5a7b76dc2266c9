"""`rota init`: what it writes works as it is."""

from __future__ import annotations

import ast
import json
import subprocess
import sys


def test_the_files_are_written_and_named(rota, tmp_path):
    said = rota("init")

    assert (said.code, said.lines) == (0, ["jobs.py", "rota.toml", "test_jobs.py"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.py", "rota.toml", "test_jobs.py"]
    assert "rota enqueue greet name=Ann --wait" in said.err


def test_nothing_is_overwritten_and_nothing_written_beside_it(rota, tmp_path):
    (tmp_path / "jobs.py").write_text("mine")

    refused = rota("init")
    after = sorted(path.name for path in tmp_path.iterdir())
    forced = rota("init", "--force")

    assert refused.code == 1
    assert refused.err == (
        f"rota: jobs.py is in {tmp_path} already; nothing was written. "
        "Choose another place with --dir, or overwrite with --force.\n"
    )
    assert (after, forced.code) == (["jobs.py"], 0)
    assert (tmp_path / "jobs.py").read_text() != "mine"


def test_a_place_that_cannot_be_written_is_named_with_the_way_out(rota, tmp_path, monkeypatch):
    def refuse(path, *_args, **_options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    said = rota("init")

    assert (said.code, said.out) == (1, "")
    assert said.err == (
        "rota: jobs.py cannot be written: Permission denied. "
        "Choose another place with --dir, or run it as a user who may write there.\n"
    )


def test_the_next_steps_name_what_must_be_installed_for_them(rota):
    assert "pip install pytest && pytest" in rota("init").err


def test_another_place_is_made_if_need_be(rota, tmp_path):
    said = rota("init", "--dir", "services/mail", "--json")

    assert [row["written"] for row in json.loads(said.out)] == [
        "services/mail/jobs.py", "services/mail/rota.toml", "services/mail/test_jobs.py",
    ]  # fmt: skip
    assert (tmp_path / "services" / "mail" / "jobs.py").exists()


def test_the_written_app_runs_and_is_found_by_its_settings(rota, process, jobs):
    rota("init")
    words = rota("enqueue", "count_words", "text=a rose is a rose", "at_least=2")
    greeting = rota("enqueue", "greet", "name=Ann")

    drained = process("worker", "--drain")

    results = {job["id"]: job["result"] for job in json.loads(rota("jobs", "list", "--json").out)}
    assert drained.code == 0, drained.err
    assert results[greeting.out.split("\t")[0]] == "Hello, Ann!"
    assert results[words.out.split("\t")[0]] == {"a": 2, "rose": 2}


def test_the_written_tests_pass(rota, tmp_path):
    rota("init")

    said = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert said.returncode == 0, said.stdout + said.stderr
    assert "3 passed" in said.stdout


def test_the_web_app_is_written_on_request_and_names_only_what_exists(rota, tmp_path):
    said = rota("init", "--fastapi")

    tree = ast.parse((tmp_path / "web.py").read_text())
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "jobs"
    }
    defined = {
        *(node.name for node in ast.parse((tmp_path / "jobs.py").read_text()).body if hasattr(node, "name")),
        "app",
    }
    assert said.lines == ["jobs.py", "rota.toml", "test_jobs.py", "web.py"]
    assert used
    assert used <= defined
