"""`import rota` is cheap, and its public names are few and known."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import rota

PUBLIC = {
    "Cancel",
    "Category",
    "ConfigError",
    "Die",
    "ErrorClass",
    "Handle",
    "Job",
    "JobArchived",
    "JobCancelled",
    "JobDead",
    "JobNotFound",
    "KeyConflict",
    "NotUnique",
    "PayloadInvalid",
    "PayloadRules",
    "PayloadTooLarge",
    "PayloadValidator",
    "Process",
    "Queue",
    "QueueFull",
    "RequiredMissing",
    "ResultTimeout",
    "Retry",
    "RetryAfter",
    "Rota",
    "RotaError",
    "SchemaOutdated",
    "SensitiveContent",
    "Snooze",
    "State",
    "StoreUnavailable",
    "Task",
    "Unique",
    "UnknownCategory",
    "UnknownTask",
    "context",
    "current_job",
    "every",
}


def modules_after(code: str) -> set[str]:
    program = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(done.stdout)}


def test_importing_rota_loads_nothing_heavy():
    loaded = modules_after("import rota")

    assert loaded.isdisjoint({"psycopg", "pydantic", "click", "rich", "asyncio", "uuid_utils"})


def test_defining_a_task_loads_neither_pydantic_nor_a_database_driver():
    loaded = modules_after("import rota\napp = rota.Rota()\n@app.task\ndef f(x: int) -> int: return x")

    assert loaded.isdisjoint({"psycopg", "pydantic", "click", "rich"})


def test_neither_the_app_nor_the_name_of_the_api_loads_a_web_framework():
    loaded = modules_after("import rota.web\nrota.Rota()")

    assert loaded.isdisjoint({"fastapi", "starlette", "itsdangerous", "jinja2", "pydantic"})


def test_the_public_names_are_these():
    assert set(rota.__all__) == PUBLIC
    assert set(dir(rota)) == PUBLIC


def test_every_public_name_is_there_and_is_called_so():
    for name in PUBLIC:
        assert getattr(rota, name).__name__ == name


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'rota' has no attribute 'Limits'"):
        _ = rota.Limits
