"""`rota top`: one picture in a pipe, a live screen on a terminal, and a terminal that is as before afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pexpect
import psycopg
import pytest

from build import new_id
from rota._core.queue import Queue
from rota.cli import exits
from rota.cli.top_screen import draw
from rota.cli.top_view import View
from rota.stores.contract import SessionStart

SMALL = (24, 80)
BACK = "\x1b[?1049l"
"""The terminal shows again what was there before."""


@pytest.fixture
def busy(jobs):
    """Two queues with work, one of them late; one job runs, one is dead."""
    jobs.dead("charge", "the card was refused", queue="pay")
    running = jobs.run("report", queue="reports", tenant="acme")
    jobs.add("mail", times=3, queue="mail")

    async def fill(store) -> None:
        await store.publish_queues([Queue("mail", target="30s")])
        start = SessionStart(new_id(), "host", 4711, {"general": 5}, ("mail", "report", "charge"))
        await store.open_session(start, lease=600)

    jobs.do(fill)
    with psycopg.connect(jobs.url, autocommit=True) as connection:
        connection.execute("UPDATE rota.jobs SET run_at = now() - interval '2 minutes' WHERE queue = 'mail'")
    jobs.running = running
    return jobs


@pytest.fixture
def screen(busy):
    """Opens `rota top` on a real terminal; whatever is left of it is ended."""
    opened = []

    def start(*options: str, size: tuple[int, int] = SMALL, url: str | None = None) -> pexpect.spawn:
        child = pexpect.spawn(
            sys.executable,
            ["-m", "rota.cli", "top", "--every", "300ms", *options],
            env={**os.environ, "TERM": "xterm-256color", "ROTA_URL": url or busy.url},
            dimensions=size,
            encoding="utf-8",
            timeout=30,
        )
        opened.append(child)
        return child

    yield start
    for child in opened:
        child.close(force=True)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_in_a_pipe_one_picture_is_printed(rota, busy):
    said = rota("top")

    assert said.code == exits.DONE
    assert said.lines[0].startswith("rota top: ")
    assert "waiting 3  running 1  dead 1  oldest 2m" in said.out
    assert " ! queue mail is behind its target of 30s: oldest waits 2m" in said.out
    assert "rota stats --by task" in said.out
    assert re.search(r"^  mail +3 +0 +0 +2m .* 30s late ", said.out, re.MULTILINE)
    assert re.search(r"^  report .* 1/5 reports    acme ", said.out, re.MULTILINE)
    assert re.search(r"^  charge +1 new .* ValueError: the card was refused", said.out, re.MULTILINE)


def test_scripts_get_the_picture_as_json(rota, busy):
    said = json.loads(rota("top", "--json").out)

    assert (said["pending"], said["running"], said["dead"], said["unknown"]) == (3, 1, 1, {})
    assert [alert["about"] for alert in said["alerts"]] == ["queue:mail"]
    assert {queue["queue"]: queue["late"] for queue in said["queues"]}["mail"] is True
    assert [work["task"] for work in said["running_jobs"]] == ["report"]
    assert said["failures"][0]["letters"] == 1


def test_the_screen_fits_a_small_terminal_and_q_gives_it_back(screen):
    child = screen()
    child.expect_exact("QUEUES")
    child.expect("q quit")
    child.expect("q quit")  # a whole screen later
    lines = plain(child.before.rpartition("\x1b[H")[2]).split("\r\n")
    child.send("q")
    child.expect(pexpect.EOF)
    child.close()

    assert max(map(len, lines)) <= 80
    assert len(lines) <= 24
    assert any("queue mail is behind its target" in line for line in lines)
    assert child.exitstatus == exits.DONE
    assert BACK in child.before
    assert "\x1b[?25h" in child.before  # the cursor too


def test_a_chosen_line_says_why_and_what_to_type(screen, busy):
    child = screen()
    child.expect_exact("QUEUES")
    child.send("\r")
    child.expect_exact("Queue mail is behind its target")
    child.expect("rota jobs why [0-9a-f-]{36}")
    child.send("\x1b")
    child.expect_exact("QUEUES")
    child.send("\x1b[B" * 30 + "\r")
    child.expect_exact("1 dead letter of charge")
    child.expect_exact("rota failures retry")


def test_a_filter_and_a_larger_window_are_drawn_at_once(screen):
    child = screen()
    child.expect_exact("QUEUES")
    child.send("/mail\r")
    child.expect_exact("only names with 'mail'")
    child.expect_exact("Nothing has that in its name.")
    child.setwinsize(40, 120)
    child.expect("QUEUES {20,}waiting")  # names have more room
    child.send("?")
    child.expect_exact("it changes nothing")


def test_ctrl_c_gives_the_terminal_back(screen):
    import termios

    child = screen()
    child.expect_exact("QUEUES")
    assert not termios.tcgetattr(child.child_fd)[3] & termios.ICANON
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == exits.INTERRUPTED
    assert BACK in child.before
    assert "Traceback" not in child.before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_being_told_to_end_gives_the_terminal_back_too(screen, number):
    child = screen()
    child.expect_exact("QUEUES")
    child.kill(number)
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == 128 + number
    assert BACK in child.before


def test_a_terminal_that_is_gone_ends_it_quietly(busy):
    ours, its = os.openpty()
    command = [sys.executable, "-m", "rota.cli", "top", "--every", "300ms"]
    env = {**os.environ, "TERM": "xterm-256color", "ROTA_URL": busy.url}
    child = subprocess.Popen(
        command, stdin=its, stdout=its, stderr=subprocess.PIPE, env=env, start_new_session=True
    )
    try:
        os.close(its)
        seen = b""
        while b"QUEUES" not in seen:
            seen += os.read(ours, 4096)
        os.close(ours)
        _, err = child.communicate(timeout=20)
    finally:
        child.kill()
        child.wait()

    assert (child.returncode, err) == (exits.DONE, b"")


def test_a_store_that_goes_away_leaves_the_last_picture_with_its_age(screen, busy, administrator):
    child = screen()
    child.expect_exact("QUEUES")
    name = urlsplit(busy.url).path.strip("/")
    administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    administrator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
    try:
        child.expect("NO[T]? (READ|ANSWER) for [3-9]s")
        child.expect_exact("waiting")
        child.expect_exact("mail")
    finally:
        administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    child.expect(r"rota top  \d\d:\d\d:\d\d UTC  last 5m")


def test_what_could_not_be_read_is_unknown_and_never_zero(busy):
    from rota.admin import Admin
    from rota.errors import StoreUnavailable

    async def look(store):
        async def away(*_, **__):
            raise StoreUnavailable("away")

        for verb in ("counts", "figures", "running", "failure_groups"):
            setattr(store, verb, away)
        return await Admin(store, actor="ann").picture()

    picture = busy.do(look)
    shown = "\n".join(line.plain for line in draw(picture, View(), 120, None, title="top").lines)

    assert "waiting unknown  running unknown  dead unknown" in shown
    assert "done/min unknown  errors unknown" in shown
    assert shown.count("unknown") >= 8
    assert " 0 " not in shown


def test_nothing_known_yet_is_no_zero_either():
    shown = [line.plain for line in draw(None, View(), 80, 24, title="rota top").lines]

    assert shown[1].startswith("Nothing is known yet.")


def test_more_lines_than_fit_are_said_to_be_more(busy):
    from rota._core.happening import Work
    from rota.admin import Admin

    picture = busy.do(lambda store: Admin(store, actor="ann").picture())
    now = datetime.now(UTC)
    work = [Work(new_id(), f"task{n}", "q", None, 1, 5, now - timedelta(seconds=n), None) for n in range(50)]
    drawn = draw(picture._replace(running=work), View(), 80, 24, title="rota top")

    assert len(drawn.lines) == 24
    assert any(re.search(r"… \d+ more; make the window higher", line.plain) for line in drawn.lines)
    assert len(drawn.choices) > 50
    last = draw(picture._replace(running=work), View(selected=52), 80, 24, title="rota top")
    [chosen] = [line.plain for line in last.lines if line.style == "reverse"][1:-1]
    assert chosen.startswith("  task")
    assert len(chosen) == 80


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (300, 100)])
def test_any_window_is_filled_and_no_more(busy, size):
    from rota.admin import Admin

    picture = busy.do(lambda store: Admin(store, actor="ann").picture())
    width, height = size
    for view in (View(), View(selected=0), View(helped=True), View(selected=0, opened=True)):
        lines = draw(picture, view, width, height, title="rota top", opened="why\n  rota jobs why ID").lines
        assert len(lines) == height
        assert max(line.cell_len for line in lines) <= width
