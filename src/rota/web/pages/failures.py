"""What breaks most: like failures together, when they came, and what was decided about them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

from fastapi import Query
from starlette.responses import RedirectResponse, Response

from rota._core.dead_letter import DeadFilter, DeadLetter, FailureGroup
from rota._core.filtering import quoted
from rota._core.ids import public_id
from rota._core.lengths import many
from rota._core.numbers import JUDGED, Figures
from rota._core.operation import grown
from rota._core.redaction import redacted_text
from rota._core.review import Review, ReviewVerb, origins
from rota.admin.dead_letters import GroupView
from rota.admin.operations import BULK
from rota.admin.scope import LOOKED_AT, OutOfScope
from rota.errors import StoreError
from rota.web.api.dead_letters import LetterShown, letter_shown
from rota.web.api.operations import SLOWEST, begun
from rota.web.api.shapes import JobId
from rota.web.asking import Asked, Asking
from rota.web.pages import sharing
from rota.web.pages.forms import TYPED_FROM, Form, Formed, back, whole_number
from rota.web.pages.notices import Notice
from rota.web.pages.pareto import pareto
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.traces import parts
from rota.web.pages.turning import first, turned
from rota.web.paging import Page, Paged
from rota.web.problems import Problem
from rota.web.roles import Role

routes = PageRoutes()

HOURS = 24
DAY = HOURS * 3600.0
GROUPS = 50
COUNTED = 10_000
WORDS = {
    Review.PENDING: "waits for review",
    Review.ACKNOWLEDGED: "acknowledged",
    Review.REPROCESSING: "reprocessing",
    Review.RESOLVED: "resolved",
    Review.DISCARDED: "discarded",
}
DONE = {
    ReviewVerb.REPROCESS: "Reprocessing",
    ReviewVerb.ACKNOWLEDGE: "Acknowledged",
    ReviewVerb.DISCARD: "Discarded",
}
BY_HOUR = (("died", "bad", "bar"),)
PACE = "The pace must be a number of jobs a second, such as 50 or 0.5; leave it empty for no limit."


class Chip(NamedTuple):
    """A review to choose, and how many dead letters stand there."""

    review: Review | None
    word: str
    chosen: bool
    letters: int | None = None

    @property
    def capped(self) -> bool:
        return self.letters == COUNTED


class Row(NamedTuple):
    """One group, as the list shows it."""

    group: FailureGroup
    message: str
    hours: Sequence[int]
    share: float | None
    """Of all runs of its task in the last day; None: unknown."""
    most: int
    """Where counting stops."""

    @property
    def day(self) -> int:
        return sum(self.hours)

    def stopped(self, number: int) -> bool:
        """Whether there may be more of it than this: nobody counted any further."""
        return number >= self.most


class Member(NamedTuple):
    """One dead letter, and what may be done to it."""

    letter: LetterShown
    verbs: tuple[ReviewVerb, ...]


@routes.get("/failures", verb="failures", role=Role.VIEWER)
async def failures(
    asked: Asked,
    review: Annotated[str, Query(max_length=20)] = Review.PENDING.value,
    task: Annotated[str, Query(max_length=1000)] = "",
) -> Response:
    """Groups of like failures, the one that was seen last first."""
    admin, chosen = asked.admin, _chosen(review)
    reviews = tuple(Review) if chosen is None else (chosen,)
    groups, figures, chips, now = await asyncio.gather(
        sharing.shared(
            asked,
            ("groups", reviews, task),
            lambda: admin.failures(DeadFilter(reviews, task=task or None, limit=GROUPS)),
        ),
        _figures(asked),
        _chips(asked, chosen, task=task or None),
        admin.store.now(),
    )
    names = tuple(group.fingerprint for group in groups)
    hours = await sharing.shared(asked, ("hours", names), lambda: admin.failure_hours(names, hours=HOURS))
    most = _most(asked)
    rows = [row(group, hours.get(group.fingerprint, [0] * HOURS), figures, most) for group in groups]
    return render(
        asked,
        "failures.html",
        title="Failures",
        here="failures",
        topics="jobs",
        now=now,
        rows=rows,
        most=max((count for one in rows for count in one.hours), default=0),
        columns=_hours(now),
        causes=pareto(groups, most),
        chips=chips,
        chosen=chosen,
        review=review,
        task=task,
        full=len(groups) == GROUPS,
    )


@routes.get(
    "/failures/{fingerprint}",
    verb="failure",
    role=Role.VIEWER,
)
async def failure(
    asked: Asked, paging: Paged, fingerprint: str, review: Annotated[str, Query(max_length=20)] = "all"
) -> Response:
    """One group: its newest trace, when it came, its dead letters, and what may be done with all of them."""
    return await _group(asked, paging, fingerprint, review)


@routes.post(
    "/failures/letters/{job_id}",
    verb="failure_letter",
    role=Role.OPERATOR,
)
async def decide_letter(asked: Asked, job_id: JobId, form: Formed) -> Response:
    """Reprocess, acknowledge or discard one dead letter."""
    verb = _verb(form)
    act = getattr(asked.admin, verb.value)
    done = await act(job_id, reason=form.reason)
    group = done.letter.fingerprint
    to = path_to(asked, "page.failure", fingerprint=group) if group else path_to(asked, "page.failures")
    said, link = f"{DONE[verb]}: one job of {done.letter.job.task}.", None
    if done.new_job is not None:
        link = path_to(asked, "page.job", job_id=public_id(done.new_job))
        said = f"A new job does the work again: {public_id(done.new_job)}."
    if done.already:
        said = f"That was done a moment before; nothing was done twice. {said}"
    return back(asked, form, Notice(said, link=link), to=to)


@routes.post(
    "/failures/{fingerprint}",
    verb="failure_decide",
    role=Role.OPERATOR,
)
async def decide(asked: Asked, paging: Paged, fingerprint: str, form: Formed) -> Response:
    """One verb on the whole group, as an operation that has its own page."""
    verb, which = _verb(form), _chosen(form.text("which", most=20) or "all") or Review.PENDING
    group = (await asked.admin.failure(fingerprint)).group.fingerprint
    wanted = DeadFilter((which,), group=group)
    matched = await asked.admin.store.count_dead_letters(wanted, cap=COUNTED)
    wrong = _doubts(form, verb, which, matched)
    if wrong is not None:
        return await _group(asked, paging, group, "all", typed=form, wrong=wrong)
    rate = form.text("rate", most=20)
    done = await begun(asked, verb, wanted, reason=form.reason, rate=None if rate is None else float(rate))
    return RedirectResponse(path_to(asked, "page.operation", operation_id=str(done.id)), status_code=303)


def _doubts(form: Form, verb: ReviewVerb, which: Review, matched: int) -> str | None:
    """Why it is not begun yet, in words for whoever sent the form."""
    if which not in origins(verb):
        return f"{verb.value.capitalize()} is not for what is {which.value.replace('_', ' ')}. Choose others above."
    expected = whole_number(form.text(f"expected.{which.value}", most=20)) or 0
    if verb is not ReviewVerb.REPROCESS and form.reason is None:
        return f"Say why: the reason is kept with each job that you {verb.value}, and in the audit."
    try:
        rate = form.text("rate", most=20)
        if rate is not None and not SLOWEST <= float(rate) <= 10_000:
            return PACE
    except ValueError:
        return PACE
    if not matched:
        return (
            "Nothing of this group stands there any more: somebody was faster, or it is reprocessed already."
        )
    # Beyond the cap nobody knows how many there are: who was shown fewer must be asked.
    capped = matched == COUNTED
    if grown(expected, matched) or (capped and expected < COUNTED):
        by_now = f"There are {matched:,} jobs or more" if capped else f"There are {many(matched, 'job')}"
        return f"{by_now} by now, and you were shown {expected:,}. Look again, then decide."
    if matched > TYPED_FROM and whole_number(form.text("number", most=20)) != expected:
        if capped:
            return f"Type {expected:,}, where counting stopped, to show that you mean all of them and what is beyond."
        return f"Type {expected:,}, the number of jobs that this is about, to show that you mean all of them."
    return None


async def _group(
    asked: Asking,
    paging: Paged,
    fingerprint: str,
    review: str,
    *,
    typed: Form | None = None,
    wrong: str | None = None,
) -> Response:
    admin, chosen = asked.admin, _chosen(review)
    view = await admin.failure(fingerprint)
    group = view.group
    wanted = DeadFilter(() if chosen is None else (chosen,), group=group.fingerprint)
    letters, hours, figures, chips = await asyncio.gather(
        admin.dead_letters(wanted._replace(before=paging.before, limit=paging.fetch)),
        admin.failure_hours([group.fingerprint], hours=HOURS),
        _figures(asked),
        _chips(asked, chosen, group=group.fingerprint),
    )
    page: Page[Any] = paging.page(
        letters, lambda letter: letter.job.id, position=lambda letter: letter.job.id
    )
    one = row(group, hours[group.fingerprint], figures, _most(asked))
    return render(
        asked,
        "failure.html",
        title=f"{group.error_type or group.error_class or 'Failure'} in {group.task}",
        here="failures",
        topics=f"task:{group.task}",
        status=200 if wrong is None else 422,
        now=view.now,
        row=one,
        group=group,
        runs=_runs(figures, group.task),
        counts={chip.review: chip for chip in chips},
        chips=chips,
        review=review,
        trace=parts(None if view.stack is None else redacted_text(view.stack)),
        members=[_member(asked, letter, view) for letter in letters[: len(page.items)]],
        later=turned(asked, page.next),
        start=first(asked),
        by_hour=list(zip(_hours(view.now), ([count] for count in one.hours), strict=True)),
        columns=BY_HOUR,
        jobs_filter=_filter(group),
        typed_from=TYPED_FROM,
        typed={name: "" if typed is None else typed.text(name) or "" for name in ("reason", "rate", "which")},
        wrong=wrong,
        verbs=BULK,
        Review=Review,
        words=WORDS,
    )


def row(group: FailureGroup, hours: Sequence[int], figures: Figures | None, most: int) -> Row:
    """A group as it may be shown to everybody who looks after jobs."""
    runs, day = _runs(figures, group.task), sum(hours)
    # Runs are counted to their end: what was not would be too small a share of them.
    share = None if not runs or day >= most else min(1.0, day / runs)
    return Row(group, redacted_text(group.message or ""), hours, share, most)


def _most(asked: Asking) -> int:
    """Where counting stops: of one tenant, so many dead letters of all groups together are looked at."""
    return COUNTED if asked.tenant is None else LOOKED_AT


def _member(asked: Asking, letter: DeadLetter, view: GroupView) -> Member:
    verbs = tuple(verb for verb in (ReviewVerb.REPROCESS, ReviewVerb.ACKNOWLEDGE, ReviewVerb.DISCARD))
    allowed = tuple(verb for verb in verbs if letter.review in origins(verb))
    return Member(letter_shown(asked, letter, view.now, listed=True), allowed)


async def _chips(asked: Asking, chosen: Review | None, **narrow: Any) -> list[Chip]:
    """The reviews, each with how many stand there, counted as far as a page may."""
    store = asked.admin.store
    counted = await asyncio.gather(
        *(store.count_dead_letters(DeadFilter((one,), **narrow), cap=COUNTED) for one in WORDS)
    )
    chips = [
        Chip(review, word, review is chosen, letters)
        for (review, word), letters in zip(WORDS.items(), counted, strict=True)
    ]
    return [*chips, Chip(None, "all", chosen is None)]


async def _figures(asked: Asking) -> Figures | None:
    """What was run in the last day; None: unknown, or about everybody."""
    try:
        return await sharing.figures(asked, DAY)
    except (OutOfScope, StoreError):
        return None


def _runs(figures: Figures | None, task: str) -> int | None:
    """The runs of a task in the last day that came to a verdict."""
    if figures is None:
        return None
    endings: Mapping[str, int] = {} if task not in (found := figures.by_task()) else found[task].endings
    return sum(endings.get(ending, 0) for ending in JUDGED)


def _hours(now: datetime) -> list[datetime]:
    """When each of the last hours began."""
    return [now - timedelta(hours=ago) for ago in range(HOURS, 0, -1)]


def _filter(group: FailureGroup) -> str:
    """The same jobs in the words of the job list, as far as it has words for them."""
    error = f" error:{quoted(group.error_type)}" if group.error_type else ""
    return f"state:dead task:{quoted(group.task)}{error}"


def _chosen(review: str) -> Review | None:
    """The review that was chosen; None: all of them."""
    if review == "all":
        return None
    try:
        return Review(review)
    except ValueError:
        known = ", ".join([*Review, "all"])
        raise Problem(422, "bad-review", f"There is no review {review!r}. Choose one of {known}.") from None


def _verb(form: Form) -> ReviewVerb:
    word = form.needed("verb", most=20)
    if word not in list(BULK):
        raise Problem(422, "bad-verb", f"{word!r} cannot be done here. Choose one of {', '.join(BULK)}.")
    return ReviewVerb(word)
