"""Admin: what the command line, HTTP and the pages ask. Faces hold no rules of their own."""

from __future__ import annotations

from rota.admin.bulk import Bulk
from rota.admin.deploy import Deploys
from rota.admin.editing import Edits
from rota.admin.job_logs import JobLogs
from rota.admin.numbers import Numbers
from rota.admin.operations import Operations
from rota.admin.picture import Pictures
from rota.admin.retention import Retained
from rota.admin.revealing import Revealing
from rota.admin.schedules import Schedules
from rota.admin.submitting import Submissions
from rota.admin.tasks import Tasks
from rota.admin.tokens import Tokens
from rota.admin.trail import AuditTrail


class Admin(
    Bulk,
    Operations,
    Schedules,
    Tasks,
    Deploys,
    Pictures,
    Numbers,
    AuditTrail,
    JobLogs,
    Tokens,
    Retained,
    Submissions,
    Revealing,
    Edits,
):
    """Everything a person may ask of the jobs in one store, and do to them, under one name in the audit.

    `Admin(store, actor="ann@host")`. Reads (`reads.py`), then actions on one job
    (`actions.py`), then actions on all jobs that match (`bulk.py`): each adds to
    the one before. Beside them, dead letters (`dead_letters.py`, and many at
    once in `operations.py`), schedules (`schedules.py`), tasks (`tasks.py`) and
    the audit (`trail.py`).
    """
