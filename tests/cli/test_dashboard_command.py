"""`rota dashboard`: a link that logs its owner in; what other machines reach has somebody at the door."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from rota.cli.dashboard import checked_prefix
from rota.errors import ConfigError
from rota.web.serving import bind

LINK = re.compile(r"Dashboard: (http://127\.0\.0\.1:(\d+)\S*)")


@contextmanager
def dashboard(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running dashboard and its link."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rota.cli", "dashboard", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stderr is not None
        seen = ""
        while not (found := LINK.search(seen)):
            line = process.stderr.readline()
            assert line, f"it ended: {seen}"
            seen += line
        yield process, found[1]
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@contextmanager
def opened(link: str) -> Iterator[httpx.Client]:
    """A browser that followed the link."""
    with httpx.Client(follow_redirects=True, headers={"accept": "text/html"}, trust_env=False) as client:
        answer = client.get(link)
        assert answer.status_code == 200, answer.text
        yield client


@pytest.mark.slow
def test_its_link_logs_in_once_and_ctrl_c_ends_it_at_once(jobs):
    jobs.add(times=3)
    with dashboard("--port", "0", "--name", "night shift") as (process, link), opened(link) as client:
        page = client.get(link.partition("/login")[0] + "/")
        assert "night shift" in page.text
        assert 'data-open href="/queues/default"' in page.text
        again = httpx.get(link, headers={"accept": "text/html"}, trust_env=False)
        assert again.status_code == 401
        assert "This link was used before" in again.text
        process.send_signal(signal.SIGINT)

        assert process.wait(10) == 0


@pytest.mark.slow
def test_below_a_prefix_every_address_has_it(jobs):
    with dashboard("--port", "0", "--prefix", "/a/b") as (_process, link), opened(link) as client:
        assert "/a/b/login?key=" in link
        page = client.get(link.partition("/login")[0])

        local = set(re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text))
        assert page.status_code == 200
        assert local
        assert [address for address in local if not address.startswith("/a/b/")] == []
        assert client.cookies.get("rota_session", path="/a/b")


@pytest.mark.slow
def test_read_only_nobody_changes_anything(jobs):
    job_id = jobs.add()
    with dashboard("--port", "0", "--read-only") as (_process, link), opened(link) as client:
        base = link.partition("/login")[0]
        refused = client.post(
            f"{base}/api/v1/jobs/{job_id}/cancel", json={}, headers={"sec-fetch-site": "same-origin"}
        )

        assert (refused.status_code, refused.json()["type"]) == (403, "urn:rota:read-only")


def test_an_address_that_other_machines_reach_needs_somebody_at_the_door(rota, jobs):
    said = rota("dashboard", "--host", "0.0.0.0", "--port", "0")

    assert said.code == 2
    assert "nothing says who may ask" in said.err
    assert "rota token create NAME" in said.err


@pytest.mark.parametrize("prefix", ["ops", "/a b", "/a?b", "/<b>"])
def test_a_prefix_that_is_no_path_is_refused(rota, jobs, prefix):
    said = rota("dashboard", "--prefix", prefix)

    assert said.code == 2
    assert f"--prefix {prefix!r} is not a path. Write it as /ops/jobs." in said.err


@pytest.mark.parametrize("prefix", ["/jobs", "/api", "/queues/", "/queues/red", "/static"])
def test_a_prefix_that_is_an_address_of_the_dashboard_itself_is_refused(rota, jobs, prefix):
    """A proxy may take the prefix away: then /jobs would be the list of jobs, and the first page as well."""
    said = rota("dashboard", "--prefix", prefix)

    assert said.code == 2
    assert f"--prefix {prefix!r} is the address of something on the dashboard itself" in " ".join(
        said.err.split()
    )
    assert f"such as /ops{prefix.rstrip('/')}." in " ".join(said.err.split())


@pytest.mark.parametrize("prefix", ["/ops/jobs", "/rota", "/api/rota", "/a/b"])
def test_other_prefixes_are_free(prefix):
    assert checked_prefix(prefix) == prefix


def test_a_port_that_was_named_and_is_taken_is_an_error_and_else_the_next_is_taken():
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=f"cannot listen on 127.0.0.1:{port}: it is used by another program"
        ):
            bind("127.0.0.1", port)
    with bind("127.0.0.1", None) as first:
        first.listen()
        with bind("127.0.0.1", None) as second:
            assert second.getsockname()[1] != first.getsockname()[1]
            assert isinstance(second, socket.socket)


WHO = """
from rota.web import Role, User

def who(request):
    name = request.headers.get("x-employee")
    return User(name, Role.OPERATOR) if name else None

nobody = "a text"
"""


@pytest.mark.slow
def test_a_function_of_ones_own_says_who_asks(jobs, tmp_path):
    (tmp_path / "dashboard_doors.py").write_text(WHO)
    door = f"{tmp_path}/dashboard_doors.py:who"
    with dashboard("--port", "0", "--auth", door, "--allow-host", "127.0.0.1") as (_, link):
        me = link.partition("/login")[0] + "/api/v1/session"
        known = httpx.get(me, headers={"x-employee": "ann"}, trust_env=False)
        stranger = httpx.get(me, trust_env=False)

    assert (known.json()["name"], known.json()["role"]) == ("ann", "operator")
    assert stranger.status_code == 401


def test_a_door_that_cannot_be_meant_is_refused_before_anything_is_served(rota, tmp_path):
    (tmp_path / "wrong_doors.py").write_text(WHO)
    named = ("--allow-host", "jobs.example.org")
    for options, code, said in (
        (("--auth", f"{tmp_path}/wrong_doors.py:who"), 2, "--allow-host jobs.example.org"),
        (("--auth", f"{tmp_path}/wrong_doors.py", *named), 2, "names no function"),
        (("--auth", f"{tmp_path}/wrong_doors.py:whom", *named), 2, "Did you mean 'who'?"),
        (("--auth", f"{tmp_path}/wrong_doors.py:nobody", *named), 2, "is not a function"),
    ):
        answer = rota("dashboard", *options)
        assert (answer.code, said in answer.err) == (code, True), (options, answer.err)
