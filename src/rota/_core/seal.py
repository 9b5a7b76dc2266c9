"""The audit as a chain: each row is sealed with all rows before it, so that none is changed or taken out unseen.

A seal keeps the digest of its row, and the hash of that digest together with the hash of the seal before. Whoever
changes a row, or a seal, would have to make every later seal anew; and a hash that somebody wrote down elsewhere then
stands nowhere in the chain. Rows that were removed on purpose keep their seals, and the row that tells of it says how
old they were.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from rota._core.actions import Audit

REMOVED = "audit_removed"
REMOVED_BEFORE = "none before "
"""How a row that tells of a removal begins to say what was removed."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Seal(NamedTuple):
    """What was written down about one row when it was committed."""

    place: int
    """Its place in the chain, from 1 on without a gap."""
    row: int
    """The row's place in the audit."""
    at: datetime
    digest: bytes
    hash: bytes


class Sealed(NamedTuple):
    """A seal and its row, as they are found now."""

    seal: Seal
    audit: Audit | None
    """None: the row is not there."""


class Verdict(NamedTuple):
    """What looking at the whole chain found."""

    rows: int
    """Rows that are there and as they were written."""
    removed: int
    """Rows that were removed on purpose; their seals are in order."""
    head: str
    """The hash of the last seal: written down elsewhere, it proves later that nothing before it was changed."""
    fault: str | None = None
    """What is wrong first; None: nothing is."""


def digest_of(row: int, audit: Audit) -> bytes:
    """What identifies a row: every field with its length, so that no two rows look alike."""
    assert audit.at is not None
    job = None if audit.job_id is None else str(audit.job_id)
    fields = (
        str(row), str(_micros(audit.at)), audit.actor, audit.action, job, audit.reason, audit.before, audit.after,
        audit.about, audit.correlation_id, audit.origin,
    )  # fmt: skip
    return sha256(b",".join(_part(field) for field in fields)).digest()


def hash_of(before: bytes, digest: bytes, at: datetime) -> bytes:
    """The hash of a seal, from that of the one before."""
    return sha256(before + digest + str(_micros(at)).encode()).digest()


def sealed(last: Seal | None, row: int, audit: Audit) -> Seal:
    """The seal of a row that is added now."""
    assert audit.at is not None
    digest = digest_of(row, audit)
    before = last.hash if last else b""
    return Seal(last.place + 1 if last else 1, row, audit.at, digest, hash_of(before, digest, audit.at))


class Examination:
    """Looks at a chain from its beginning, part by part."""

    def __init__(self, expected: str | None = None) -> None:
        self._expected = expected
        self._last = Seal(0, 0, _EPOCH, b"", b"")
        self._rows = 0
        self._gone = 0
        self._gone_last: Seal | None = None
        """The newest of them is enough: if that one was removed on purpose, all were. There may be millions."""
        self._removed_before: datetime | None = None
        self._fault: str | None = None

    @property
    def place(self) -> int:
        """How far it has come."""
        return self._last.place

    def look(self, part: Iterable[Sealed]) -> bool:
        """Go on; False: something is wrong, and looking further tells nothing more."""
        for one in part:
            self._fault = self._wrong(one)
            if self._fault is not None:
                return False
            self._last = one.seal
            if one.seal.hash.hex() == self._expected:
                self._expected = None
            if one.audit is None:
                self._gone += 1
                last = self._gone_last
                self._gone_last = one.seal if last is None or one.seal.at >= last.at else last
            else:
                self._rows += 1
                self._note_removal(one.audit)
        return True

    def verdict(self, unsealed: int | None = None) -> Verdict:
        """What was found, if nothing was wrong on the way; `unsealed`: a row that somebody added past the chain."""
        fault = self._fault
        limit = self._removed_before
        stolen = self._gone_last
        if fault is None and stolen is not None and (limit is None or stolen.at >= limit):
            fault = f"row {stolen.row} of {stolen.at.isoformat()} is gone, and no row tells of its removal"
        if fault is None and unsealed is not None:
            fault = f"row {unsealed} has no seal: it was added with the triggers of the audit switched off"
        if fault is None and self._expected is not None:
            fault = (
                f"the hash {self._expected} is nowhere in the chain: its end was cut off, or it was made anew"
            )
        return Verdict(self._rows, self._gone, self._last.hash.hex(), fault)

    def _wrong(self, one: Sealed) -> str | None:
        seal, row = one
        where = f"row {seal.row} of {seal.at.isoformat()}"
        if seal.place != self._last.place + 1:
            return f"seal {self._last.place + 1} is gone: the next is that of {where}"
        if seal.hash != hash_of(self._last.hash, seal.digest, seal.at):
            return f"the seal of {where} does not follow from the one before: it was changed, or others were moved"
        if row is not None and seal.digest != digest_of(seal.row, row):
            return f"{where} is not as it was written ({row.action} by {row.actor})"
        return None

    def _note_removal(self, row: Audit) -> None:
        if row.action != REMOVED or not (row.after or "").startswith(REMOVED_BEFORE):
            return
        try:
            before = datetime.fromisoformat((row.after or "").removeprefix(REMOVED_BEFORE))
        except ValueError:
            return
        self._removed_before = max(self._removed_before or before, before)


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _part(field: str | None) -> bytes:
    if field is None:
        return b"-"
    text = field.encode()
    return str(len(text)).encode() + b":" + text
