"""All mutants, room by room."""

from __future__ import annotations

import in_account
import in_charts
import in_finding
import in_payloads
import in_postgres
import in_retention
import in_rules
import in_watching
import in_web
import in_worker

ALL = (
    *in_rules.MUTANTS,
    *in_postgres.MUTANTS,
    *in_account.MUTANTS,
    *in_charts.MUTANTS,
    *in_finding.MUTANTS,
    *in_payloads.MUTANTS,
    *in_retention.MUTANTS,
    *in_watching.MUTANTS,
    *in_web.MUTANTS,
    *in_worker.MUTANTS,
)
