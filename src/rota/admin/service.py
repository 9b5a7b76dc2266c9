"""Admin: what the command line, HTTP and the pages ask. Faces hold no rules of their own."""

from __future__ import annotations

from rota.admin.deploy import Deploys
from rota.admin.editing import Edits
from rota.admin.health import Health
from rota.admin.job_logs import JobLogs
from rota.admin.job_operations import JobOperations
from rota.admin.logins import Logins
from rota.admin.numbers import Numbers
from rota.admin.retention import Retained
from rota.admin.revealing import Revealing
from rota.admin.schedules import Schedules
from rota.admin.submitting import Submissions
from rota.admin.tokens import Tokens
from rota.admin.trail import AuditTrail
from rota.admin.transfers import Transfers
from rota.admin.worker_orders import WorkerOrders


class Admin(
    JobOperations,
    Schedules,
    Health,
    Deploys,
    WorkerOrders,
    Numbers,
    AuditTrail,
    JobLogs,
    Tokens,
    Logins,
    Retained,
    Submissions,
    Revealing,
    Edits,
    Transfers,
):
    """Everything a person may ask of the jobs in one store, and do to them, under one name in the audit.

    `Admin(store, actor="ann@host")`. Reads (`reads.py`), then actions on one job
    (`actions.py`), then actions on all jobs that match (`bulk.py`): each adds to
    the one before. Beside them, dead letters (`dead_letters.py`, and many at
    once in `operations.py`; all jobs that match, as operations of that kind, in
    `job_operations.py`), schedules (`schedules.py`), tasks (`tasks.py`), workers
    (`worker_orders.py`), the audit (`trail.py`), and jobs from store to store
    (`transfers.py`).
    """
