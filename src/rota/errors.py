"""Everything that Rota raises.

    RotaError
    ├── ConfigError               a setting that cannot be used
    ├── StoreError                the store said no
    │   ├── StoreUnavailable      not reachable now; what was asked may be repeated
    │   ├── SchemaOutdated        the database needs `rota migrate`, or this code is too old for it
    │   ├── PermissionMissing     the database role may not do that
    │   ├── StoreFull             no disk space left
    │   ├── EmbeddedUnavailable   the embedded server cannot run here
    │   └── NotSupported          this store has no such ability
    ├── EnqueueError              a job that was not stored
    │   ├── UnknownTask           nobody registered a task of that name
    │   ├── PayloadInvalid        the arguments do not fit the task, or are not storable JSON
    │   ├── PayloadTooLarge       more JSON than the limit
    │   ├── RequiredMissing       the app's rules ask for something that the job does not carry
    │   ├── SensitiveContent      the payload holds what only belongs behind a reference
    │   ├── UnknownCategory       nobody registered a category of that name
    │   ├── KeyConflict           the idempotency key belongs to a job with other arguments
    │   ├── NotUnique             a job with this unique key exists, and the policy is reject
    │   ├── QueueFull             too many jobs wait in the queue already
    │   └── TransactionUnusable   what was given as tx= cannot carry a job
    ├── JobError                  about one stored job
    │   ├── JobNotFound
    │   │   └── JobArchived       only its summary is left
    │   ├── JobChanged            somebody else changed it first
    │   ├── MoveRefused           its state does not allow that
    │   ├── GroupNotFound         no dead job has that fingerprint
    │   ├── OperationNotFound
    │   ├── OperationOver         a bulk operation that cannot be stopped or resumed any more
    │   ├── JobDead               awaited, and it died
    │   ├── JobCancelled          awaited, and it was cancelled
    │   └── ResultTimeout         awaited, and not finished in time
    ├── TaskError                 a task that cannot be defined so
    ├── TaskNotParked             to be released, and not parked
    ├── ScheduleError             a schedule that cannot be declared, changed or run so
    │   ├── ScheduleNotFound
    │   └── ScheduleChanged       somebody else changed it first
    └── NotInJob                  current_job() or a resource was asked for outside a running job

    Outcome (what a handler raises to end its attempt; none of them is an error)
    ├── Snooze      run me again later; the attempt is not counted
    ├── Cancel      stop, for good, without blame
    ├── Die         stop, for good, and let a person look
    └── RetryAfter  failed; run me again after this pause

Every message says what happened, with which value, and what to do next.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from rota._core.durations import Duration
    from rota._core.retention import ArchivedJob


class RotaError(Exception):
    """Every error of Rota."""


class ConfigError(RotaError):
    """A setting that cannot be used."""


class StoreError(RotaError):
    """The store said no."""


class StoreUnavailable(StoreError):
    """The store cannot be reached now. What was asked may safely be repeated."""


class SchemaOutdated(StoreError):
    """Code and database schema do not fit each other."""

    def __init__(self, found: int | None, wanted: int) -> None:
        self.found, self.wanted = found, wanted
        if found is None:
            what = (
                f"the database has no Rota schema yet (this code needs version {wanted}). Run `rota migrate`."
            )
        elif found < wanted:
            what = (
                f"the database has Rota schema version {found}, this code needs {wanted}. Run `rota migrate`."
            )
        else:
            what = (
                f"the database has Rota schema version {found}, this code knows only {wanted}. "
                "Upgrade the rota package here."
            )
        super().__init__(what)


class PermissionMissing(StoreError):
    """The database role lacks a right."""


class StoreFull(StoreError):
    """The store has no space left; nothing was written."""


class EmbeddedUnavailable(StoreError):
    """The embedded server cannot run here."""


class NotSupported(StoreError):
    """This store has no such ability."""

    def __init__(self, store: str, ability: str, instead: str) -> None:
        super().__init__(f"the {store} store cannot {ability}. {instead}")


class EnqueueError(RotaError):
    """A job that was not stored."""


class UnknownTask(EnqueueError, LookupError):
    """A job names a task that nobody has registered."""

    def __init__(self, name: str, known: Collection[str], *, published: bool = False) -> None:
        self.name = name
        close = get_close_matches(name, known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "."
        fix = "Import the module that defines it before you use it."
        if published:  # it was looked for in the store: whoever asks may have no code
            fix = "`rota tasks list` shows all; a worker or `rota deploy` makes those of its code known."
        super().__init__(f"no task named {name!r} is registered here ({len(known)} are){meant} {fix}")


class PayloadInvalid(EnqueueError, ValueError):
    """The arguments do not fit the task, or cannot be stored as JSON."""


class PayloadTooLarge(PayloadInvalid):
    """More JSON than the limit."""


class RequiredMissing(PayloadInvalid):
    """The app's rules ask for something that the job does not carry, or carries in a wrong form."""

    def __init__(self, message: str, *, fields: Collection[str] = ()) -> None:
        self.fields = tuple(fields)
        """The names of what is missing or wrong: `tenant_id`, `connection_id`, …"""
        super().__init__(message)


class SensitiveContent(PayloadInvalid):
    """The payload holds a secret or content, where the app's rules allow references only."""

    def __init__(self, message: str, *, paths: Collection[str] = ()) -> None:
        self.paths = tuple(paths)
        """Where: `user.password`, `rows[3].note`."""
        super().__init__(message)


class UnknownCategory(EnqueueError, LookupError):
    """A task or a job names a category that nobody has registered."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        self.name = name
        close = get_close_matches(str(name), known, n=1)
        super().__init__(
            f"there is no category {name!r}"
            + (f"; did you mean {close[0]!r}?" if close else f". Known are {', '.join(known)}.")
            + f" One of your own is made with app.category({name!r})."
        )


class KeyConflict(EnqueueError):
    """The idempotency key belongs to a job with other arguments."""

    def __init__(self, key: str, job_id: UUID) -> None:
        self.key, self.job_id = key, job_id
        super().__init__(
            f"the key {key!r} belongs to job {job_id}, which was enqueued with other arguments. "
            "Use another key for other work, or the same arguments to get that job."
        )


class NotUnique(EnqueueError):
    """A job with this unique key exists, and the policy is to reject the second."""

    def __init__(self, key: str, job_id: UUID) -> None:
        self.key, self.job_id = key, job_id
        super().__init__(
            f"a job with the unique key {key!r} exists already: {job_id}. "
            "Wait for it, or choose another policy (keep, replace, reschedule, merge)."
        )


class QueueFull(EnqueueError):
    """Too many jobs wait in the queue already. Nothing was stored."""

    def __init__(
        self, queue: str, tenant: str | None, waiting: int, limit: int, *, jobs: int = 1, waited: float = 0.0
    ) -> None:
        self.queue, self.tenant, self.waiting, self.limit = queue, tenant, waiting, limit
        whose = "" if tenant is None else f" for tenant {tenant!r}"
        option = "max_pending" if tenant is None else "max_pending_per_tenant"
        what = (
            f"about {waiting:,} jobs wait in it"
            if jobs == 1
            else f"about {waiting:,} jobs wait, and {jobs:,} came"
        )
        instead = "Enqueue fewer at once" if jobs > limit else "Enqueue it later, start more workers"
        super().__init__(
            f"queue {queue!r} is full{whose}: {what}; {limit:,} may wait ({option})."
            + (f" It was still full after {waited:g} s." if waited else "")
            + f" Nothing was stored. {instead}, or raise {option}."
        )


class TransactionUnusable(EnqueueError):
    """What was given as tx= cannot carry a job. Nothing was stored, and your transaction is as it was."""


class JobError(RotaError):
    """About one stored job."""


class JobNotFound(JobError, LookupError):
    """No job has this id, or it was removed by retention."""

    def __init__(self, job_id: object) -> None:
        super().__init__(
            f"no job has the id {job_id}. It may have been removed by retention; `rota jobs list` shows what is there."
        )


class JobArchived(JobNotFound):
    """Retention let the job go; `summary` is what is left of it."""

    def __init__(self, summary: ArchivedJob) -> None:
        self.summary = summary
        JobError.__init__(self, f"{summary.words}. `rota jobs show {summary.id}` has what is left of it.")


class JobChanged(JobError):
    """Somebody else changed the job between reading and writing."""

    def __init__(self, job_id: object, state: object) -> None:
        super().__init__(
            f"job {job_id} was changed by somebody else meanwhile and is {state} now. Look at it again, then repeat."
        )


class MoveRefused(JobError):
    """The job's state does not allow that."""

    def __init__(self, job_id: object, state: str, verb: str, hint: str) -> None:
        self.state, self.verb = state, verb
        super().__init__(f"cannot {verb} job {job_id}: it is {state}. {hint}")


class GroupNotFound(JobError, LookupError):
    """No dead job has this fingerprint."""

    def __init__(self, fingerprint: str, known: Collection[str]) -> None:
        near = [one for one in known if one.startswith(fingerprint)] or get_close_matches(fingerprint, known)
        hint = f"; did you mean {' or '.join(map(repr, near[:3]))}?" if near else "."
        super().__init__(
            f"no dead job belongs to the group {fingerprint!r}{hint} `rota failures list` shows the groups."
        )


class OperationNotFound(JobError, LookupError):
    """No bulk operation has this id."""

    def __init__(self, operation_id: object) -> None:
        super().__init__(f"no operation has the id {operation_id}. `rota operations list` shows them.")


class OperationOver(JobError):
    """The operation is not in a state to be stopped or resumed."""

    def __init__(self, operation_id: object, state: str) -> None:
        hint = "Begin a new one for what is left." if state == "finished" else "It does nothing now."
        super().__init__(f"operation {operation_id} is {state} already. {hint}")


class JobDead(JobError):
    """The awaited job died."""

    def __init__(self, job_id: object, error_class: str | None, message: str | None) -> None:
        self.error_class = error_class
        super().__init__(
            f"job {job_id} died ({error_class or 'no class'}): {message or 'no message'}. "
            f"`rota jobs show {job_id}` has the stack; `rota jobs retry {job_id}` runs it again."
        )


class JobCancelled(JobError):
    """The awaited job was cancelled."""

    def __init__(self, job_id: object, reason: str | None) -> None:
        super().__init__(
            f"job {job_id} was cancelled ({reason or 'no reason given'}). `rota jobs retry {job_id}` runs it again."
        )


class ResultTimeout(JobError, TimeoutError):
    """The awaited job did not finish in time; it goes on."""

    def __init__(self, job_id: object, seconds: float, label: str) -> None:
        super().__init__(
            f"job {job_id} did not finish within {seconds:g} s; it is {label} and goes on. Is a worker running?"
        )


class TaskError(RotaError, TypeError):
    """A task that cannot be defined or used so."""


class ScheduleError(RotaError, ValueError):
    """A schedule that cannot be declared, changed or run so."""


class ScheduleNotFound(ScheduleError, LookupError):
    """No schedule has this name."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        close = get_close_matches(name, known, n=1)
        super().__init__(
            f"no schedule is named {name!r}"
            + (f"; did you mean {close[0]!r}?" if close else f" ({len(known)} others are there).")
            + " `rota schedules list` shows them; a worker makes those of its code known when it starts."
        )


class ScheduleChanged(ScheduleError):
    """Somebody else changed the schedule between reading and writing."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"schedule {name!r} was changed by somebody else meanwhile. Look at it again, then repeat."
        )


class TaskNotParked(RotaError, LookupError):
    """A task is to be released, and is not parked."""

    def __init__(self, name: str, parked: Collection[str]) -> None:
        close = get_close_matches(name, parked, n=1)
        which = f"parked are {', '.join(sorted(parked))}" if parked else "no task is parked"
        super().__init__(
            f"the task {name!r} is not parked"
            + (f"; did you mean {close[0]!r}? " if close else f"; {which}. ")
            + "`rota tasks list` shows every task."
        )


class NotInJob(RotaError, LookupError):
    """Asked for outside a running job."""


class Outcome(Exception):
    """What a handler raises to say how its attempt ended."""


class Snooze(Outcome):
    """Run this job again after `delay`; the attempt is not counted."""

    def __init__(self, delay: Duration, reason: str | None = None) -> None:
        from rota._core.durations import seconds

        self.delay, self.reason = seconds(delay, "Snooze delay"), reason
        super().__init__(f"snoozed for {self.delay:g} s" + (f": {reason}" if reason else ""))


class Cancel(Outcome):
    """End this job as cancelled."""

    def __init__(self, reason: str | None = None) -> None:
        self.reason = reason
        super().__init__(reason or "cancelled by its handler")


class Die(Outcome):
    """End this job as dead, whatever attempts are left; a person should look."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class RetryAfter(Outcome):
    """This attempt failed; run the next after `delay`. Counts as rate limited."""

    def __init__(self, delay: Duration, reason: str | None = None) -> None:
        from rota._core.durations import seconds

        self.delay, self.reason = seconds(delay, "RetryAfter delay"), reason
        super().__init__(reason or f"asked to be retried after {self.delay:g} s")
