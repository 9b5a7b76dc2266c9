"""Settings: where values come from, which wins, and what bad ones are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.config import PRODUCTION_SIGNS, Settings, masked
from rota.errors import ConfigError


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """A machine on which nothing is set."""
    import os

    for name in list(os.environ):
        if name.startswith(("ROTA_", "PG", "WORKER_", "DATABASE_URL", *PRODUCTION_SIGNS)):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


def test_the_defaults():
    settings = Settings.load()

    assert (settings.url, settings.env, settings.lanes) == (None, "development", {"fast": 3, "general": 5})
    assert (settings.lease, settings.beat, settings.poll, settings.idle_poll) == (15.0, 5.0, 1.0, 5.0)
    assert (settings.grace, settings.stall, settings.log_format) == (25.0, 1.0, "auto")
    assert (settings.payload_warn, settings.payload_limit, settings.result_limit) == (
        10_240,
        262_144,
        262_144,
    )
    assert settings.origin("lease") == "default"


def test_an_argument_wins_over_the_environment_which_wins_over_the_file(monkeypatch):
    write("rota.toml", 'lease = 30\nbeat = 6\ngrace = "1m"\n')
    monkeypatch.setenv("ROTA_LEASE", "40")
    monkeypatch.setenv("ROTA_BEAT", "7s")

    settings = Settings.load(lease=50.0, poll=None)

    assert (settings.lease, settings.beat, settings.grace, settings.poll) == (50.0, 7.0, 60.0, 1.0)
    assert [settings.origin(name) for name in ("lease", "beat", "grace", "poll")] == [
        "argument", "ROTA_BEAT", "rota.toml", "default",
    ]  # fmt: skip


def test_settings_may_live_in_pyproject():
    write("pyproject.toml", '[project]\nname = "x"\n[tool.rota]\nlease = "20s"\n')

    settings = Settings.load()

    assert (settings.lease, settings.origin("lease")) == (20.0, "pyproject.toml [tool.rota]")


def test_rota_toml_wins_over_pyproject():
    write("pyproject.toml", "[tool.rota]\nlease = 20\n")
    write("rota.toml", "lease = 21\n")

    assert Settings.load().lease == 21.0


def test_a_pyproject_that_does_not_speak_of_rota_changes_nothing():
    write("pyproject.toml", '[project]\nname = "x"\n')

    assert Settings.load().origin("lease") == "default"


def test_an_empty_variable_counts_as_not_set(monkeypatch):
    monkeypatch.setenv("ROTA_LEASE", "")

    assert Settings.load().lease == 15.0


@pytest.mark.parametrize(
    ("variables", "url", "origin"),
    [
        ({}, "embedded:", "default"),
        (
            {"ROTA_URL": "postgresql://r@h/d", "DATABASE_URL": "postgresql://d@h/d"},
            "postgresql://r@h/d",
            "ROTA_URL",
        ),
        ({"DATABASE_URL": "postgres://d@h/d", "PGHOST": "p"}, "postgresql://d@h/d", "DATABASE_URL"),
        ({"DATABASE_URL": "postgresql+asyncpg://d@h/d"}, "postgresql://d@h/d", "DATABASE_URL"),
        ({"PGHOST": "db.internal"}, "postgresql://", "PGHOST"),
        ({"PGSERVICE": "jobs"}, "postgresql://", "PGSERVICE"),
        ({"PGUSER": "me"}, "embedded:", "default"),
        ({"ROTA_URL": "embedded:elsewhere"}, "embedded:elsewhere", "ROTA_URL"),
    ],
)
def test_the_address_comes_from_the_most_particular_place(monkeypatch, variables, url, origin):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    settings = Settings.load()

    assert (settings.address(), settings.origin("url")) == (url, origin)


def test_an_address_in_the_file_is_meant_for_rota_and_wins_over_database_url(monkeypatch):
    write("rota.toml", 'url = "postgresql://jobs@h/d"\n')
    monkeypatch.setenv("DATABASE_URL", "postgresql://web@h/d")

    assert Settings.load().address() == "postgresql://jobs@h/d"
    assert Settings.load(url="memory://").address() == "memory://"


@pytest.mark.parametrize("sign", [("ROTA_ENV", "production"), *((name, "x") for name in PRODUCTION_SIGNS)])
def test_in_production_a_missing_address_is_an_error(monkeypatch, sign):
    monkeypatch.setenv(*sign)

    with pytest.raises(ConfigError) as refused:
        Settings.load().address()

    assert "no database address is set, and this is production" in str(refused.value)
    assert sign[0] in str(refused.value)
    assert "ROTA_URL=embedded: keeps jobs here on purpose" in str(refused.value)


def test_in_production_the_embedded_server_must_be_asked_for_by_name(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("ROTA_URL", "embedded:/srv/jobs")

    assert Settings.load().address() == "embedded:/srv/jobs"


def test_settings_can_be_read_in_production_without_an_address(monkeypatch):
    monkeypatch.setenv("ROTA_ENV", "production")

    settings = Settings.load()

    assert settings.lease == 15.0
    assert settings.production == "ROTA_ENV=production"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:secret@h/d", r"'mysql://u:\*\*\*@h/d' \(from ROTA_URL\) is not one that Rota can open"),
        ("postgresq://h/d", r"Did you mean postgresql://\?"),
        ("localhost/d", r"Use postgresql://user:password@host/database, embedded: or memory://"),
        ("postgresql:h/d", "is not one that Rota can open"),
    ],
)
def test_an_address_that_cannot_be_opened_says_what_can(monkeypatch, url, message):
    monkeypatch.setenv("ROTA_URL", url)

    with pytest.raises(ConfigError, match=message) as refused:
        Settings.load().address()

    assert "secret" not in str(refused.value)


def test_a_database_url_that_is_not_for_rota_says_how_to_give_its_own(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "sqlite:///db.sqlite3")

    with pytest.raises(ConfigError, match=r"\(from DATABASE_URL\).* Set ROTA_URL for Rota's own database"):
        Settings.load().address()


@pytest.mark.req("L6")
@pytest.mark.parametrize(
    ("variables", "lanes"),
    [
        ({"WORKER_FAST_THREADS": "7"}, {"fast": 7, "general": 5}),
        ({"WORKER_FAST_THREADS": "7", "WORKER_GENERAL_THREADS": "9"}, {"fast": 7, "general": 9}),
        ({"WORKER_FAST_THREADS": "0"}, {"general": 5}),
        ({"ROTA_LANES": "general=100"}, {"general": 100}),
        (
            {"ROTA_LANES": "fast=2, reports=2:reports,exports, general=4"},
            {"fast": 2, "reports": "2:reports,exports", "general": 4},
        ),
        ({"ROTA_LANES": "fast=2", "WORKER_FAST_THREADS": "7"}, {"fast": 2}),
    ],
)
def test_lanes_by_variables(monkeypatch, variables, lanes):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert Settings.load().lanes == lanes


@pytest.mark.req("L6")
def test_lanes_by_file_and_the_thread_variables_on_top(monkeypatch):
    write("rota.toml", '[lanes]\nfast = 1\nreports = "2:reports"\n')
    assert Settings.load().lanes == {"fast": 1, "reports": "2:reports"}
    monkeypatch.setenv("WORKER_FAST_THREADS", "4")

    settings = Settings.load()

    assert settings.lanes == {"fast": 4, "reports": "2:reports"}
    assert settings.origin("lanes") == "rota.toml, WORKER_FAST_THREADS"


def test_one_settings_object_does_not_change_the_defaults_of_the_next(monkeypatch):
    monkeypatch.setenv("WORKER_FAST_THREADS", "7")
    Settings.load()
    monkeypatch.delenv("WORKER_FAST_THREADS")

    assert Settings.load().lanes == {"fast": 3, "general": 5}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "ROTA_LEASE",
            "soon",
            "the setting lease is 'soon' (from ROTA_LEASE), which cannot be used: it 'soon' is not understood",
        ),
        (
            "ROTA_LEASE",
            "-1",
            "the setting lease is '-1' (from ROTA_LEASE), which cannot be used: it must be 0 or more",
        ),
        (
            "ROTA_POLL",
            "0",
            "the setting poll is '0' (from ROTA_POLL), which cannot be used: Input should be greater than 0",
        ),
        (
            "ROTA_PAYLOAD_LIMIT",
            "0",
            "the setting payload_limit is '0' (from ROTA_PAYLOAD_LIMIT), which cannot be used",
        ),
        ("ROTA_PAYLOAD_LIMIT", "big", "Input should be a valid integer"),
        ("ROTA_LOG_FORMAT", "xml", "Input should be 'auto', 'text' or 'json'"),
        ("ROTA_LANES", "many", 'it is not understood; write it like "fast=3,general=5"'),
        (
            "ROTA_BEAT",
            "10",
            "lease (15 s) must be at least twice beat (10 s), or one late heartbeat costs a worker its jobs",
        ),
        ("WORKER_FAST_THREADS", "many", "WORKER_FAST_THREADS is 'many'; it must be a whole number of slots"),
    ],
)
def test_a_bad_value_says_which_where_and_why(monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError) as refused:
        Settings.load()

    assert message in str(refused.value)


def test_a_misspelt_setting_in_the_file_is_found():
    write("rota.toml", "leese = 3\n")

    with pytest.raises(
        ConfigError, match=r"there is no setting 'leese' \(from rota.toml\); did you mean 'lease'\?"
    ):
        Settings.load()


def test_a_setting_that_resembles_none_lists_those_there_are():
    with pytest.raises(ConfigError, match=r"there is no setting 'xyz' .*; known are url, listen_url"):
        Settings.load(xyz=1)


def test_a_file_that_is_not_toml_is_named():
    write("rota.toml", "lease = = 3\n")

    with pytest.raises(ConfigError, match=r"rota.toml is not valid TOML: .*line 1.*Correct it there"):
        Settings.load()


def test_a_table_that_is_no_table_is_told_so():
    write("pyproject.toml", "[tool]\nrota = 3\n")

    with pytest.raises(ConfigError, match=r"pyproject.toml: tool.rota must be a table of settings, not 3"):
        Settings.load()


def test_settings_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Settings.load().lease = 3.0


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("postgresql://u:se@cr/et@h/d", "postgresql://u:***@h/d"),
        ("postgresql://u:se:cret@h/d?sslmode=require", "postgresql://u:***@h/d?sslmode=require"),
        (
            "postgresql://h/d?user=u&password=secret&sslmode=require",
            "postgresql://h/d?user=u&password=***&sslmode=require",
        ),
        ("host=h password='se cret' user=u", "host=h password=*** user=u"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgresql://h/d?options=a@b", "postgresql://h/d?options=a@b"),
        ("embedded:.rota", "embedded:.rota"),
    ],
)
def test_passwords_are_masked(url, shown):
    assert masked(url) == shown


def test_what_is_shown_has_no_password_in_it(monkeypatch):
    monkeypatch.setenv("ROTA_URL", "postgresql://u:secret@h/d")
    monkeypatch.setenv("ROTA_LISTEN_URL", "postgresql://u:secret@direct/d")
    settings = Settings.load()

    rows = {row.name: (row.value, row.origin) for row in settings.shown()}

    assert rows["url"] == ("postgresql://u:***@h/d", "ROTA_URL")
    assert rows["lanes"] == ("fast=3,general=5", "default")
    assert set(rows) == set(Settings.model_fields)
    assert "secret" not in repr(settings) + str(settings) + str(rows)
    assert repr(settings).startswith("Settings(url='postgresql://u:***@h/d'")


def test_an_address_to_listen_at_is_read_from_everywhere_and_freed_of_its_driver(monkeypatch):
    write("rota.toml", 'listen_url = "postgres://u:secret@direct/db"\n')
    assert Settings.load().listen_url == "postgresql://u:secret@direct/db"
    monkeypatch.setenv("ROTA_LISTEN_URL", "postgresql+psycopg://u:secret@other/db")

    settings = Settings.load()

    assert settings.listen_url == "postgresql://u:secret@other/db"
    assert "postgresql://u:***@other/db" in repr(settings)


@pytest.mark.parametrize("address", ["memory://", "embedded:", "redis://here", "direct.example.org"])
def test_an_address_to_listen_at_that_is_not_postgresql_is_refused(monkeypatch, address):
    monkeypatch.setenv("ROTA_LISTEN_URL", address)

    with pytest.raises(ConfigError) as refused:
        Settings.load()

    assert str(refused.value) == (
        f"the setting listen_url is '{address}' (from ROTA_LISTEN_URL), which cannot be used: it is not an address of "
        "PostgreSQL; write postgresql://user:password@host/database. Change it there."
    )
