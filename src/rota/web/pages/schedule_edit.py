"""The form that sets what holds of a schedule in place of its code's word, and what comes of it before it is saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from starlette.responses import RedirectResponse, Response

from rota import options
from rota._core.durations import seconds
from rota._core.schedule import Edits, Misfire, Overlap, ScheduleRecord, ScheduleSpec, job_for
from rota.admin.schedules import Upcoming, altered, upcoming
from rota.errors import EnqueueError, ScheduleChanged, ScheduleError
from rota.schedule import one_of, troubles
from rota.schedule_times import EPOCH
from rota.web.asking import Asked, Asking
from rota.web.pages.forms import Form, Formed
from rota.web.pages.notices import Notice, give
from rota.web.pages.rendering import path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.schedules import in_words
from rota.web.pages.schema_answers import Answers, marked, read, same
from rota.web.pages.schema_form import Field, prefilled
from rota.web.roles import Role

routes = PageRoutes()

SHOWN = 5
TYPED = 4_000
UNFIT = "Some settings do not fit; see below."
CHANGED = (
    "Nothing was saved: somebody changed the schedule since this form was opened. What you typed is kept. "
)
AGAIN = "Below stands what it would change now; save again if that is what you mean."
UNITS = ((86_400, "d"), (3600, "h"), (60, "m"))


class Kind(NamedTuple):
    """One thing that can be set: what it is called, and how its value is written and read."""

    name: str
    label: str
    help: str
    write: Callable[[Any], str]
    read: Callable[[str], Any]
    choices: tuple[str, ...] = ()
    lines: bool = False


class Setting(NamedTuple):
    """One field of the form."""

    kind: Kind
    typed: str
    code: str
    """What the code says."""
    holds: str
    """What holds now."""
    edited: bool
    """True: what holds now was set by people."""
    error: str = ""


class Change(NamedTuple):
    """What saving would change."""

    label: str
    before: str
    after: str
    back: bool
    """True: the code's word is to hold again."""


class Wish(NamedTuple):
    """What a form says is to hold."""

    settings: Sequence[Setting]
    fields: Sequence[Field]
    edits: Edits
    back: Sequence[str]
    changes: Sequence[Change]

    @property
    def wrong(self) -> bool:
        parts = [part for field in self.fields for part in (field, *field.fields)]
        return any(one.error for one in self.settings) or any(part.error for part in parts)


def _length(value: float) -> str:
    """A length that is read back as it is: 90 is 90s, 120 is 2m."""
    for size, unit in UNITS:
        if value and value % size == 0:
            return f"{value / size:.0f}{unit}"
    return f"{value:.6f}".rstrip("0").rstrip(".") + "s"


def _seconds(text: str) -> float:
    try:
        number: float | None = float(text)
    except ValueError:
        number = None
    return seconds(text if number is None else number, "this")


def _number(text: str) -> int:
    digits = text.replace(",", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise ValueError(f"{text!r} is not a whole number.")
    return int(digits)


def _priority(text: str) -> int:
    found: int = options.terms({"priority": _number(text)})["priority"]
    return found


def _queue(text: str) -> str:
    found: str = options.terms({"queue": text})["queue"]
    return found


KINDS = (
    Kind("timing", "Time", "Five fields such as 30 2 * * *, or every 5m.", str, lambda text: " ".join(text.split())),
    Kind("tz", "Time zone", "Such as Europe/Berlin.", str, str),
    Kind("jitter", "Jitter", "A delay of its own within so long: 30s, 2m; 0s: none.", _length, _seconds),
    Kind(
        "overlap", "Overlap", "While the job of the last tick is unfinished: skip this one, or allow another.",
        str, lambda text: one_of("overlap", Overlap, text), tuple(Overlap),
    ),
    Kind(
        "misfire", "Missed ticks", "Skip them, run the last one, or run all of them (then overlap must be allow).",
        str, lambda text: one_of("misfire", Misfire, text), tuple(Misfire),
    ),
    Kind("cap", "At most", "With missed ticks = all: so many of them.", str, _number),
    Kind("grace", "Grace", "So late a tick still is on time.", _length, _seconds),
    Kind(
        "windows", "Maintenance windows", "One a line: 0 1 * * SUN for 2h. Nothing ticks inside. Empty: no windows.",
        "\n".join, lambda text: tuple(line.strip() for line in text.splitlines() if line.strip()), lines=True,
    ),
    Kind("queue", "Queue", "Where its jobs wait.", str, _queue),
    Kind("priority", "Priority", "0 (first) to 32,767 (last); 100 is normal.", str, _priority),
)  # fmt: skip


@routes.get("/edit/schedules/{name:path}", verb="schedule_form", role=Role.MANAGER)
async def form_of(asked: Asked, name: str) -> Response:
    """The form with what holds now, and which of it is the code's word."""
    record = await asked.admin.schedule(name)
    return await _page(asked, record, await _wish(asked, record, Form([])), Form([]))


@routes.post("/edit/schedules/{name:path}", verb="schedule_edit", role=Role.MANAGER)
async def edit(asked: Asked, name: str, form: Formed) -> Response:
    """Show what would come of it; save it only when that was asked. What does not fit is said beside its field."""
    record = await asked.admin.schedule(name)
    wish = await _wish(asked, record, form)
    version = _typed(form, "version") or str(record.version)
    # First of all: whatever page answers carries the new version, and who sends that must know what he overwrites.
    if version != str(record.version):
        return await _changed(asked, record, wish, form)
    if wish.wrong:
        return await _page(asked, record, wish, form, wrong=UNFIT)
    if form.text("do") != "save":
        return await _page(asked, record, wish, form, shown=True)
    if not wish.changes:
        return _done(asked, name, "Nothing was changed.")
    try:
        await asked.admin.edit_schedule(
            name, wish.edits, back=wish.back, reason=form.reason, version=record.version
        )
    except ScheduleChanged:
        record = await asked.admin.schedule(name)
        return await _changed(asked, record, await _wish(asked, record, form), form)
    except (ScheduleError, EnqueueError) as error:
        told = wish._replace(fields=marked(Answers({}, {}, tuple(wish.fields)), str(error)))
        return await _page(asked, record, told, form, wrong=str(error))
    labels = ", ".join(change.label.lower() for change in wish.changes)
    return _done(asked, name, f"Changed {labels} of {name}. Workers see it within five seconds.")


async def _changed(asked: Asking, record: ScheduleRecord, wish: Wish, form: Form) -> Response:
    """The form again, with what it would do to the schedule as somebody else has left it."""
    wrong = CHANGED + (UNFIT if wish.wrong else AGAIN)
    return await _page(asked, record, wish, form, wrong=wrong, status=409)


def _done(asked: Asking, name: str, words: str) -> Response:
    response = RedirectResponse(path_to(asked, "page.schedule", name=name), status_code=303)
    give(asked, response, Notice(words))
    asked.desk.recently.forget()
    return response


async def _wish(asked: Asking, record: ScheduleRecord, form: Form) -> Wish:
    """What the form says, field by field; what it does not name stays as it is."""
    code, holds = _values(record.spec), _values(record.effective)
    said: dict[str, Any] = {}
    settings = []
    for kind in KINDS:
        now, theirs = kind.write(holds[kind.name]), kind.write(code[kind.name])
        typed = _typed(form, kind.name, now)
        setting = Setting(kind, typed, theirs, now, kind.name in record.edits.said)
        try:
            if typed != now:
                value = kind.read(typed) if typed or kind.lines else code[kind.name]
                said[kind.name] = None if value == code[kind.name] else value
        except (ValueError, TypeError, ScheduleError) as error:
            setting = setting._replace(error=str(error))
        settings.append(setting)
    fields, payload = await _arguments(asked, record, form, said)
    back = [name for name, value in said.items() if value is None]
    edits = Edits(**said)
    wrong = troubles(record._replace(edits=altered(record, edits, back)).effective)
    settings = [one if one.error else one._replace(error=wrong.get(one.kind.name, "")) for one in settings]
    changes = [
        Change(
            one.kind.label, one.holds, one.code if one.kind.name in back else one.typed, one.kind.name in back
        )
        for one in settings
        if one.kind.name in said
    ]
    return Wish(settings, fields, edits, back, [*changes, *payload])


async def _arguments(
    asked: Asking, record: ScheduleRecord, form: Form, said: dict[str, Any]
) -> tuple[Sequence[Field], list[Change]]:
    """The fields of its arguments; what was typed into them goes into `said`."""
    code, holds = (_payload(spec) for spec in (record.spec, record.effective))
    schema: dict[str, Any] = next(
        (
            json.loads(spec.schema_json)
            for spec in await asked.admin.store.tasks()
            if spec.name == record.spec.task
        ),
        {},
    )
    fields = prefilled(schema, holds)
    names = {part.name for field in fields for part in (field, *field.fields)}
    if not any(name in names for name, _ in form.pairs):
        return fields, []
    answers = read(fields, form)
    if answers.wrong or not answers.edits:
        return answers.fields, []
    back = same(answers.arguments, code)
    said["payload_json"] = None if back else json.dumps(answers.arguments, ensure_ascii=False)
    # Of arguments only the names are told: their values may be hidden.
    return answers.fields, [Change("Arguments", "", ", ".join(sorted(answers.edits)), back)]


def _values(spec: ScheduleSpec) -> Mapping[str, Any]:
    job = job_for(spec, EPOCH, UUID(int=0))
    return {**spec._asdict(), "queue": job.queue, "priority": job.priority}


def _payload(spec: ScheduleSpec) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(spec.template_json).get("payload", {})
    return found


def _typed(form: Form, name: str, unless: str = "") -> str:
    """What was typed, also where it is longer than can be meant."""
    found = next((value for key, value in form.pairs if key == name), unless)
    return found.replace("\r\n", "\n").strip()[:TYPED]


async def _page(
    asked: Asking,
    record: ScheduleRecord,
    wish: Wish,
    form: Form,
    *,
    wrong: str = "",
    shown: bool = False,
    status: int = 422,
) -> Response:
    now = await asked.admin.store.now()
    spec = record._replace(edits=altered(record, wish.edits, wish.back)).effective
    coming: list[Upcoming] = []
    if not wish.wrong:
        coming = upcoming(spec, now, SHOWN)
    return render(
        asked,
        "schedule_edit.html",
        title=f"Edit {record.name}",
        here="schedules",
        status=status if wrong else 200,
        at=path_to(asked, "page.schedule_form", name=record.name),
        record=record,
        spec=spec,
        words=in_words(spec),
        settings=wish.settings,
        fields=wish.fields,
        changes=wish.changes,
        answered=bool(form.pairs),
        ready=shown or status == 409,
        broken=wish.wrong,
        wrong=wrong,
        coming=coming,
        now=now,
        reason=_typed(form, "reason"),
    )
