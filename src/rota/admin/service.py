"""Admin: what the command line, HTTP and the pages ask. Faces hold no rules of their own."""

from __future__ import annotations

from rota.admin.bulk import Bulk
from rota.admin.schedules import Schedules
from rota.admin.tasks import Tasks


class Admin(Bulk, Schedules, Tasks):
    """Everything a person may ask of the jobs in one store, and do to them, under one name in the audit.

    `Admin(store, actor="ann@host")`. Reads (`reads.py`), then actions on one job
    (`actions.py`), then actions on all jobs that match (`bulk.py`): each adds to
    the one before. Beside them, schedules (`schedules.py`) and tasks
    (`tasks.py`).
    """
