"""The log of a worker process."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager

import pytest

from build import a_stored_job
from rota.cli import logs
from rota.config import Settings
from rota.current import RunningJob, running


@contextmanager
def quiet_root():
    """The root logger as a fresh process has it; pytest hangs its own ears on it before each test."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = []
    yield root
    root.handlers = handlers
    root.setLevel(level)


def record(message="said", **extra):
    made = logging.makeLogRecord(
        {"name": "shop", "levelno": logging.INFO, "levelname": "INFO", "msg": message}
    )
    made.__dict__.update(extra)
    return made


@pytest.fixture
def in_a_job():
    job = a_stored_job(task="greet", correlation_id="order-7")
    token = running.set(RunningJob(job))
    yield job
    running.reset(token)


def test_a_line_of_words_names_the_job_that_speaks(in_a_job):
    line = logs.Words().format(record())

    assert line.endswith(f" shop [greet {in_a_job.id}]: said")


def test_secrets_are_hidden_in_both_forms_of_the_log():
    try:
        raise ValueError("postgresql://ann:hunter2@db/shop is away")
    except ValueError as error:
        failed = {"exc_info": (type(error), error, error.__traceback__)}
    said = record("login of %s with password=hunter2", args=("ann",), token="hunter2", order=7, **failed)
    words, line = logs.Words().format(said), json.loads(logs.JsonLines().format(said))

    assert "login of ann with password=***" in words
    assert (line["message"], line["token"], line["order"]) == ("login of ann with password=***", "***", 7)
    assert "ValueError: postgresql://ann:***@db/shop is away" in line["error"]
    assert "hunter2" not in words + json.dumps(line)


def test_outside_a_job_a_line_names_none():
    assert logs.Words().format(record()).endswith(" shop: said")


def test_a_warning_is_marked_and_an_error_brings_its_stack():
    try:
        raise ValueError("boom")
    except ValueError as error:
        bad = record(
            levelno=logging.ERROR, levelname="ERROR", exc_info=(type(error), error, error.__traceback__)
        )

    line = logs.Words().format(bad)

    assert " error shop: said\nTraceback" in line
    assert line.endswith("ValueError: boom")


def test_a_json_line_has_the_job_and_what_the_caller_added(in_a_job):
    line = json.loads(logs.JsonLines().format(record(order=7)))

    assert (line["message"], line["level"], line["logger"], line["order"]) == ("said", "info", "shop", 7)
    assert (line["job_id"], line["task"], line["correlation_id"]) == (str(in_a_job.id), "greet", "order-7")


@pytest.mark.parametrize(
    ("settings", "formatter"),
    [
        ({}, logs.Words),
        ({"log_format": "json"}, logs.JsonLines),
        ({"env": "production"}, logs.JsonLines),
        ({"env": "production", "log_format": "text"}, logs.Words),
    ],
)
def test_machines_get_json_in_production_and_on_request(settings, formatter):
    with quiet_root() as root:
        logs.configure(Settings.load(**settings), verbose=False)

        assert isinstance(root.handlers[0].formatter, formatter)
        assert root.level == logging.INFO


def test_an_outage_is_not_told_by_every_try_of_the_pool(monkeypatch):
    pool = logging.getLogger("psycopg.pool")
    monkeypatch.setattr(pool, "level", logging.NOTSET)
    with quiet_root():
        logs.configure(Settings.load(), verbose=False)

        assert pool.level == logging.ERROR


def test_logging_that_the_app_has_set_up_is_left_alone():
    with quiet_root() as root:
        own = logging.NullHandler()
        root.addHandler(own)

        logs.configure(Settings.load(), verbose=True)

        assert root.handlers == [own]
