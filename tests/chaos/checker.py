"""The checker: does what happened keep the promises? Each check is one invariant and yields what breaks it.

I1 durability, I2 termination, I3 fencing, I4 overlap, I5 attempts, I6 uniqueness, I7 duplicates, I8 schedules,
I9 audit, I10 counts, I11 tenancy, I12 bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations, groupby
from typing import NamedTuple

from chaos.calendar import wrong_ticks
from chaos.canaries import leaks
from chaos.effects import Effect
from chaos.evidence import Evidence
from chaos.facts import Row
from chaos.reduction import shortest
from chaos.sums import wrong_sums
from chaos.trail import Told, astray, wrong

REDUCED = 20
"""So many of the violations are reduced, those with the shortest histories, to find the shortest of all."""


class Violation(NamedTuple):
    """One broken promise; `key` names the job, where it is about one."""

    invariant: str
    key: str | None
    what: str


def durability(seen: Evidence) -> Iterator[Violation]:
    """Each acknowledged enqueue is exactly one job; one that was not is none or one, never two."""
    intended = {entry.key for entry in seen.entries}
    for entry in seen.entries:
        rows = seen.rows.get(entry.key, [])
        if len(rows) > 1:
            yield Violation("I1", entry.key, f"one enqueue became {len(rows)} jobs")
        if entry.withdrawn and rows:
            yield Violation("I1", entry.key, "its transaction was given up, and a job is there")
        if entry.acked and not rows:
            yield Violation("I1", entry.key, f"acknowledged as job {entry.job}, and no job is there")
        elif entry.acked and entry.job not in {row.job for row in rows}:
            yield Violation("I1", entry.key, f"acknowledged as job {entry.job}, but stored as {rows[0].job}")
    for key in seen.rows.keys() - intended:
        yield Violation("I1", key, "a job that nobody enqueued")


def termination(seen: Evidence) -> Iterator[Violation]:
    """Each job has ended, well (chaos gives them attempts enough), and an end never changed."""
    for row in seen.tables.rows:
        if not row.terminal:
            yield Violation("I2", row.key, f"still {row.state} after the run")
        elif row.state not in seen.ends:
            yield Violation("I2", row.key, f"ended as {row.state} ({row.error_class})")
    keys = {row.job: row.key for row in seen.tables.rows}
    for job, before, after in seen.samples.changed:
        yield Violation("I2", keys.get(job), f"its end changed from {before} to {after}")


def fencing(seen: Evidence) -> Iterator[Violation]:
    """What is stored comes from the last claim, and from what really happened under it."""
    for row in completed(seen):
        fence = row.version - 1
        if not isinstance(row.result, dict) or row.result.get("fence") != fence:
            yield Violation(
                "I3", row.key, f"stored result {row.result}, but its last claim had fence {fence}"
            )
        elif not any(run.fence == fence and run.how == "returned" for run in seen.runs.get(row.job, [])):
            yield Violation(
                "I3", row.key, f"stored as completed under fence {fence}, where no handler returned"
            )
    ends = {(run.job, run.fence): run for run in seen.effects}
    keys = {row.job: row for row in seen.tables.rows}
    for tried in seen.tables.tried:
        run, job = ends.get((tried.job, tried.fence)), keys.get(tried.job)
        if job is None:
            yield Violation("I3", None, f"an attempt of a job that is gone: {tried}")
        elif tried.fence >= job.version:
            yield Violation(
                "I3", job.key, f"an attempt of fence {tried.fence}, the job has version {job.version}"
            )
        elif tried.error_class not in ("lost", "crash") and (run is None or run.how in (None, "returned")):
            yield Violation(
                "I3", job.key, f"stored as failed ({tried.error_class}), but its handler did not fail"
            )


def overlap(seen: Evidence) -> Iterator[Violation]:
    """Two executions of one job overlap only where the older one's lease was past."""
    for runs in seen.runs.values():
        for older, newer in combinations(runs, 2):
            if older.fence == newer.fence:
                yield Violation("I4", newer.key, f"the claim with fence {newer.fence} was run twice")
            elif _overlaps(seen, older, newer):
                yield Violation(
                    "I4", newer.key, f"fence {newer.fence} began while {older.fence} ran under a living lease"
                )


def attempts(seen: Evidence) -> Iterator[Violation]:
    """Attempt numbers are 1 to n without gaps, at most as many as allowed, and every start is accounted for.

    A suspect gets the attempt back that it lost among others.
    """
    tried = {job: list(found) for job, found in groupby(seen.tables.tried, key=lambda tried: tried.job)}
    for row in completed(seen):
        numbers = [attempt.attempt for attempt in tried.get(row.job, [])]
        counted = [attempt.attempt for attempt in tried.get(row.job, []) if attempt.outcome != "suspect"]
        if [*counted, row.attempt] != list(range(1, len(counted) + 2)):
            yield Violation("I5", row.key, f"attempts {numbers}, then {row.attempt}: not 1 to n")
        if row.attempt > row.max_attempts:
            yield Violation("I5", row.key, f"{row.attempt} attempts, {row.max_attempts} allowed")
    for row in seen.tables.rows:
        for run in seen.runs.get(row.job, []):
            last = row.terminal and run.fence == row.version - 1
            known = seen.tried.get((run.job, run.fence))
            if not last and known is None and not seen.stopped(run):
                yield Violation("I5", row.key, f"started under fence {run.fence}, and no attempt says so")
            elif known is not None and known.attempt != run.attempt:
                yield Violation("I5", row.key, f"ran as attempt {run.attempt}, stored as {known.attempt}")


def uniqueness(seen: Evidence) -> Iterator[Violation]:
    """Never two unfinished jobs of one unique key, never two running in one gate: sampled, and by the effect log."""
    for name, count in seen.samples.twins:
        yield Violation("I6", None, f"{count} unfinished jobs with the unique key {name} at once")
    for gate, count in seen.samples.crowded:
        yield Violation("I6", None, f"{count} running jobs in gate {gate} at once")
    in_line = sorted((run for run in seen.effects if run.group), key=lambda run: (run.group, run.start))
    for group, runs in groupby(in_line, key=lambda run: run.group):
        for older, newer in combinations(list(runs), 2):
            apart = older.job == newer.job or not _overlaps(seen, older, newer)
            if not apart and not seen.lapsed(newer, older.start):
                yield Violation("I6", newer.key, f"began in group {group} while {older.key} ran there")


def duplicates(seen: Evidence) -> Iterator[Violation]:
    """Every start but the last has a reason: we killed, froze or cut off its process, or its handler failed."""
    last = {row.job: row.version - 1 for row in seen.tables.rows if row.terminal}
    for job, runs in seen.runs.items():
        for run in runs:
            if run.fence != last.get(job) and not _explained(seen, run):
                tried = seen.tried.get((job, run.fence))
                stored = "no attempt stored" if tried is None else f"stored as {tried.error_class}"
                yield Violation(
                    "I7",
                    run.key,
                    f"a start that no fault explains: fence {run.fence}, pid {run.pid}, {stored}",
                )


def schedules(seen: Evidence) -> Iterator[Violation]:
    """Each tick that was due in the run has exactly one job, and no other tick has any."""
    for what in wrong_ticks(seen.tables.fired, seen.due):
        yield Violation("I8", None, what)


def audit(seen: Evidence) -> Iterator[Violation]:
    """What the audit tells of every job that people acted on is a legal walk that ends where the job stands."""
    told = {job: list(rows) for job, rows in groupby(sorted(seen.tables.told, key=_job), key=_job)}
    keys = {row.job: row.key for row in seen.tables.rows}
    for letter in seen.tables.letters:
        what = wrong(letter, told.get(letter.job, []))
        if what is not None:
            yield Violation("I9", keys.get(letter.job), what)
    states = {row.job: row.state for row in seen.tables.rows}
    for job in told.keys() | {job for job, state in states.items() if state == "held"}:
        what = astray(states.get(job), told.get(job, []))
        if what is not None:
            yield Violation("I9", keys.get(job), what)


def counts(seen: Evidence) -> Iterator[Violation]:
    """No job is missing in the sums; what workers counted never exceeds what happened, and equals it in a calm run."""
    if seen.tables.sums is None:
        return
    acked = sum(entry.acked for entry in seen.entries)
    possible = sum(not entry.withdrawn for entry in seen.entries) + len(seen.tables.fired)
    for what in wrong_sums(seen.tables.sums, acked=acked, possible=possible, exact=seen.calm):
        yield Violation("I10", None, what)


def tenancy(seen: Evidence) -> Iterator[Violation]:
    """Nobody was shown a word of a tenant that is not his own."""
    for what in leaks(seen.shown, seen.tenants):
        yield Violation("I11", None, what)


def bounds(seen: Evidence) -> Iterator[Violation]:
    """Memory, connections and notices stay within limits; no process outlives the worker that made it."""
    samples, limits = seen.samples, seen.limits
    if samples.memory > limits.memory:
        yield Violation("I12", None, f"a worker used {samples.memory} bytes of memory")
    if samples.connections > limits.connections:
        yield Violation("I12", None, f"{samples.connections} connections at once")
    if samples.notifications > limits.notifications:
        yield Violation("I12", None, f"the queue of notices was {samples.notifications:.0%} full")
    for pid in seen.orphans:
        yield Violation("I12", None, f"process {pid} outlived its worker")
    for pid in seen.stubborn:
        yield Violation("I12", None, f"worker {pid} did not stop when it was asked to")
    for death in seen.deaths:
        if not death.wanted:
            yield Violation("I12", None, f"worker {death.pid} ended by itself with code {death.code}")


CHECKS: list[Callable[[Evidence], Iterator[Violation]]] = [
    durability,
    termination,
    fencing,
    overlap,
    attempts,
    uniqueness,
    duplicates,
    schedules,
    audit,
    counts,
    tenancy,
    bounds,
]


def check(seen: Evidence) -> list[Violation]:
    """Everything that is wrong."""
    return [violation for one in CHECKS for violation in one(seen)]


def report(seen: Evidence, violations: list[Violation]) -> str:
    """What is wrong, in few words, and the shortest story that shows it."""
    counts = Counter(violation.invariant for violation in violations)
    lines = [", ".join(f"{name}: {count}" for name, count in sorted(counts.items())) or "nothing is wrong"]
    lines += [f"{v.invariant} {v.key or ''} {v.what}" for v in violations[:10]]
    about_jobs = [violation for violation in violations if violation.key is not None]
    about_jobs.sort(key=lambda violation: len(seen.history(violation.key or "")))
    stories = [(v, _story(shortest(seen, v, check), v)) for v in about_jobs[:REDUCED]]
    if stories:
        violation, story = min(stories, key=lambda told: len(told[1]))
        lines += [
            "",
            f"the shortest history, of {violation.key} ({violation.invariant} {violation.what}):",
            *story,
        ]
        whole = seen.history(violation.key or "")
        if len(whole) > len(story):
            lines += ["", f"all that is known of {violation.key}:", *whole]
    return "\n".join(lines)


def _story(part: Evidence, violation: Violation) -> list[str]:
    """The history of the job that a violation is about, and then of others that have a part in it."""
    keys = dict.fromkeys([violation.key or "", *(effect.key for effect in part.effects)])
    first, *others = keys
    return [*part.history(first), *(f"{key}: {line}" for key in others for line in part.history(key))]


def _job(told: Told) -> str:
    return told.job


def completed(seen: Evidence) -> list[Row]:
    return [row for row in seen.tables.rows if row.state == "completed"]


def _overlaps(seen: Evidence, older: Effect, newer: Effect) -> bool:
    """Whether both ran at once, although the older one's lease still held when the newer one began."""
    both_ran = max(older.start, newer.start) < min(seen.ended(older), seen.ended(newer))
    return both_ran and not seen.lapsed(older, newer.start)


def _explained(seen: Evidence, run: Effect) -> bool:
    tried = seen.tried.get((run.job, run.fence))
    if tried is None:
        return seen.stopped(run)  # handed back by a worker that was told to stop
    if tried.error_class == "crash":
        return seen.killed(run)
    if tried.error_class != "lost":
        return run.how not in (None, "returned")
    return seen.killed(run) or seen.frozen(run, tried) or seen.cut_off(tried)
