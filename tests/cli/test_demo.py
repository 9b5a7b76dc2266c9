"""`rota demo`: a finite tour in a pipe, one that stays on a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
import time

import httpx
import pexpect
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path, place):
    from rota.stores.postgres.embedded import EmbeddedServer

    yield tmp_path / "demo"
    EmbeddedServer(tmp_path / "demo").destroy()


def test_in_a_pipe_the_tour_ends_by_itself_with_a_summary_and_what_to_try_next(process, place):
    began = time.monotonic()
    said = process("demo", "--dir", place)

    rows = {line.split()[0]: line.split()[1:] for line in said.lines}
    assert said.code == 0, said.err
    assert time.monotonic() - began < 30
    assert "is ready (" in said.err
    assert "Dashboard: http://127.0.0.1:" in said.err
    assert "2 duplicates recognised by key" in said.err
    assert rows["make_thumbnail"][:5] == ["60", "60", "0", "0", "0"]
    assert rows["charge_card"][:5] == ["6", "6", "6", "0", "0"]
    assert rows["import_feed"][:5] == ["1", "0", "1", "1", "0"]
    assert rows["place_order"][:2] == ["1", "1"]
    assert rows["crunch_numbers"][:5] == ["1", "0", "0", "0", "1"]
    assert f"rota jobs list --url embedded:{place}" in said.err
    assert "Traceback" not in said.err
    assert process("db", "status", "--url", f"embedded:{place}").code == 1


def test_on_a_terminal_the_tour_draws_stays_for_commands_beside_it_and_ends_by_ctrl_c(process, place):
    child = pexpect.spawn(
        sys.executable,
        ["-m", "rota.cli", "demo", "--no-browser", "--dir", str(place)],
        env={**os.environ, "TERM": "xterm-256color"},
        dimensions=(50, 110),
        encoding="utf-8",
        timeout=60,
    )
    child.expect("━")  # a bar
    child.expect("p50 wait")
    seen = child.before
    child.expect(r"Stop with Ctrl-C\.")

    link = re.findall(r"http://127\.0\.0\.1:\d+/login\?key=[\w-]+", seen + child.before)[-1]
    with httpx.Client(headers={"accept": "text/html"}, follow_redirects=True, trust_env=False) as client:
        page = client.get(link)
    beside = process("jobs", "list", "--state", "dead", "--json", "--url", f"embedded:{place}")
    workers = process("health", "--workers", "1", "--url", f"embedded:{place}")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()

    assert page.status_code == 200
    assert "Overview" in page.text
    assert {job["task"] for job in json.loads(beside.out)} == {"import_feed"}
    assert workers.code == 0
    assert child.exitstatus == 0
    assert "Traceback" not in child.before


def test_the_demo_has_a_server_of_its_own(rota):
    said = rota("demo", "--url", "postgresql://db/shop")

    assert said.code == 2
    assert "the demo has a server of its own; leave --url out, or choose its place with --dir." in said.err


def test_without_a_home_the_demo_goes_to_a_passing_place(monkeypatch, tmp_path):
    from rota.cli import demo

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert demo._place() == tmp_path / "data" / "rota" / "demo"

    (tmp_path / "file").write_text("")
    monkeypatch.setattr(demo.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    assert demo._place().parent.parent == tmp_path
