"""The jobs that belong to one: where it comes from, what it enqueued, and who did its work again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from rota._core.dead_letter import DeadLetter, reprocess_of
from rota._core.job import Job
from rota._core.job_filter import JobFilter
from rota.admin.reads import CHILDREN_SHOWN
from rota.web.asking import Asking
from rota.web.pages.job_list import listed

ANCESTORS = 20


class Relative(NamedTuple):
    """Another job, and what it is to this one."""

    what: str
    job: Job


class Family(NamedTuple):
    """All of them that are kept."""

    relatives: Sequence[Relative]
    children: Sequence[Job]
    more_children: bool


async def family(asked: Asking, job: Job, letter: DeadLetter | None) -> Family:
    """Jobs of other tenants are not there; neither are those that retention removed."""
    admin = asked.admin
    original = reprocess_of(job)
    known: dict[UUID, str] = {}
    for what, other in (
        ("does its work again", None if letter is None else letter.reprocessed_as),
        ("did the same later, and completed", None if letter is None else letter.newer_success),
        ("took its place", job.superseded_by),
        ("its work is done again here", original),
    ):
        if other is not None:
            known.setdefault(other, what)
    found = {one.id: one for one in await admin.store.get(list(known))} if known else {}
    relatives = [Relative(what, listed(found[other])) for other, what in known.items() if other in found]
    if job.parent_id != original:
        relatives += await _ancestors(asked, job)
    wanted = JobFilter(parent_id=job.id, oldest_first=True, limit=CHILDREN_SHOWN + 1, brief=True)
    children = [listed(one) for one in await admin.list(wanted)]
    return Family(relatives, children[:CHILDREN_SHOWN], len(children) > CHILDREN_SHOWN)


async def _ancestors(asked: Asking, job: Job) -> list[Relative]:
    above: list[Relative] = []
    seen, parent = {job.id}, job.parent_id
    while parent is not None and parent not in seen and len(above) < ANCESTORS:
        found = await asked.admin.store.get([parent])
        if not found:
            break
        seen.add(parent)
        above.append(Relative("its parent" if not above else "the parent of that", listed(found[0])))
        parent = found[0].parent_id
    return above
