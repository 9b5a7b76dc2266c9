"""Looking at the chain of the audit: what is remembered on the way, and what is said at its end."""

from __future__ import annotations

from datetime import timedelta

from build import NOON
from rota._core.actions import Audit
from rota._core.seal import REMOVED, REMOVED_BEFORE, Examination, Seal, Sealed, sealed


def chain(*audits: Audit) -> list[Sealed]:
    found: list[Sealed] = []
    last: Seal | None = None
    for row, audit in enumerate(audits, 1):
        last = sealed(last, row, audit)
        found.append(Sealed(last, audit))
    return found


def looked(minutes: int, removed: str) -> list[Audit]:
    rows = [Audit("ann", "looked", None, at=NOON + timedelta(minutes=minute)) for minute in range(minutes)]
    return [*rows, Audit("ann", REMOVED, None, after=removed, at=NOON + timedelta(hours=1))]


def test_rows_that_were_removed_on_purpose_are_counted_and_not_kept_in_mind():
    """There may be millions of them: one is enough to know of all."""
    rows = chain(*looked(50, f"{REMOVED_BEFORE}{(NOON + timedelta(minutes=30)).isoformat()}"))
    examination = Examination()
    examination.look(one._replace(audit=None) if at < 30 else one for at, one in enumerate(rows))

    verdict = examination.verdict()

    assert (verdict.rows, verdict.removed, verdict.fault) == (21, 30, None)
    assert not [kept for kept in vars(examination).values() if isinstance(kept, list | dict | set)]


def test_one_row_more_than_was_told_of_is_named():
    rows = chain(*looked(50, f"{REMOVED_BEFORE}{(NOON + timedelta(minutes=30)).isoformat()}"))
    examination = Examination()
    examination.look(one._replace(audit=None) if at <= 30 else one for at, one in enumerate(rows))

    fault = examination.verdict().fault

    assert fault is not None
    assert fault.startswith("row 31 of ")
