"""Rota: durable background jobs, kept in the database you already trust."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota._core.categories import Category
    from rota._core.failure import ErrorClass
    from rota._core.job import Job, State
    from rota._core.payload_rules import PayloadRules
    from rota._core.payload_validator import PayloadValidator
    from rota._core.process import Process
    from rota._core.queue import Queue
    from rota._core.retry import Retry
    from rota.app import Rota
    from rota.current import context, current_job
    from rota.errors import (
        Cancel,
        ConfigError,
        Die,
        JobArchived,
        JobCancelled,
        JobDead,
        JobNotFound,
        KeyConflict,
        NotUnique,
        PayloadInvalid,
        PayloadTooLarge,
        QueueFull,
        RequiredMissing,
        ResultTimeout,
        RetryAfter,
        RotaError,
        SchemaOutdated,
        SensitiveContent,
        Snooze,
        StoreUnavailable,
        UnknownCategory,
        UnknownTask,
    )
    from rota.handle import Handle
    from rota.options import Unique
    from rota.schedule import every
    from rota.task import Task

__all__ = [
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
]

_HOMES = {
    "Category": "rota._core.categories",
    "ErrorClass": "rota._core.failure",
    "Handle": "rota.handle",
    "Job": "rota._core.job",
    "PayloadRules": "rota._core.payload_rules",
    "PayloadValidator": "rota._core.payload_validator",
    "Process": "rota._core.process",
    "Queue": "rota._core.queue",
    "Retry": "rota._core.retry",
    "Rota": "rota.app",
    "State": "rota._core.job",
    "Task": "rota.task",
    "Unique": "rota.options",
    "context": "rota.current",
    "current_job": "rota.current",
    "every": "rota.schedule",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that `import rota` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'rota' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES.get(name, "rota.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
