"""The picture of `rota top`, drawn: lines of a given width, as many as fit. Pure: no terminal is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text

from rota._core.job import State
from rota.cli.words import ago, clean, many, percent, span

if TYPE_CHECKING:
    from rota._core.dead_letter import FailureGroup
    from rota._core.happening import Work
    from rota.admin.alerts import Alert
    from rota.admin.numbers import QueueView
    from rota.admin.picture import Picture
    from rota.cli.top_view import View

UNKNOWN = "unknown"
KEYS = " q quit  ↑↓ choose  Enter why  / filter  s sort  p pause  r refresh  ? help"
HELP = """\
rota top shows the whole, again and again; it changes nothing.

  ↑ ↓ or j k    choose a line            Enter  say why, and what to do next
  /             only names with a text   Esc    back; show everything again
  s             sort queues              r      read now
  p or Space    pause                    q      quit

! is bad, * is a warning. What could not be read is unknown, never zero.
Rates, errors and lanes are of the last minutes, as the first line says;
workers report them every ten seconds. A queue's slots are those of living
workers that may serve it. FAILURES are dead letters that wait for review."""


class Choice(NamedTuple):
    """A line that can be chosen."""

    kind: str
    """alert, queue, running or failure."""
    of: Any


class Section(NamedTuple):
    """A part of the picture: its head, its lines, and what is said in place of lines."""

    head: str
    rows: Sequence[tuple[Text, Choice]]
    instead: str = ""


class Drawn(NamedTuple):
    """What is on the screen, and which choices it has."""

    lines: list[Text]
    choices: list[Choice]


def draw(
    picture: Picture | None,
    view: View,
    width: int,
    height: int | None,
    *,
    title: str,
    opened: str | None = None,
) -> Drawn:
    """The screen. Without a height everything is drawn, and nothing is chosen."""
    lines = [Text(title, "reverse" if height else "bold")]
    if picture is None:
        lines.append(Text("Nothing is known yet.", "dim"))
        return Drawn(_cut(lines[:height], width), [])
    lines.append(_tiles(picture))
    sections = _sections(picture, view, width)
    choices = [choice for section in sections for _, choice in section.rows]
    if height is None:
        for section in sections:
            if section.head:
                lines += [Text(), Text(section.head, "bold")]
            for row, choice in section.rows:
                lines += [row, Text(f"     {choice.of.do}")] if choice.kind == "alert" else [row]
            if not section.rows and section.instead:
                lines.append(Text(f"   {section.instead}", "dim"))
        return Drawn(_cut(lines, width), choices)
    room = max(0, height - len(lines) - 1)
    if view.helped:
        body = [Text(line) for line in ["", *HELP.splitlines()]]
    elif view.opened and opened is not None:
        body = _opened(opened, width)
    else:
        body = _body(sections, view, room)
    lines += [*body[:room], *[Text()] * (room - len(body)), _footer(view)]
    return Drawn(_cut(lines[:height], width), choices)


def _footer(view: View) -> Text:
    if view.typing:
        return Text(f" only names with: {view.wanted}_   (Enter keeps it, Esc drops it)", "reverse")
    if view.opened:
        return Text(" Esc back  ↑↓ the next one  q quit", "reverse")
    if view.wanted:
        return Text(
            f" only names with {view.wanted!r} (Esc: all)  q quit  ↑↓ choose  Enter why  ? help", "reverse"
        )
    return Text(KEYS, "reverse")


def _tiles(picture: Picture) -> Text:
    seen = picture.seen
    whole = None if seen.figures is None else seen.figures.whole()
    errors = None if whole is None else whole.error_rate
    tiles = [
        ("waiting", _count(seen.jobs(State.PENDING), capped=seen.capped), ""),
        ("running", _count(None if picture.running is None else seen.jobs(State.RUNNING)), ""),
        ("dead", _count(seen.jobs(State.DEAD), capped=seen.capped), ""),
        ("oldest", UNKNOWN if seen.heads is None else _long(seen.oldest_wait), ""),
        ("done/min", UNKNOWN if whole is None else _rate(whole.done * 60 / seen.since), ""),
        ("errors", UNKNOWN if whole is None else _share(errors), "bold red" if (errors or 0) > 0.1 else ""),
    ]
    line = Text(" ")
    for name, value, style in tiles:
        line.append(f"{name} ", "dim")
        line.append(f"{value}  ", style or ("yellow" if value == UNKNOWN else "bold"))
    return line


def _sections(picture: Picture, view: View, width: int) -> list[Section]:
    seen = picture.seen
    wanted = view.wanted.lower()

    def matching(*names: str | None) -> bool:
        return not wanted or any(wanted in (name or "").lower() for name in names)

    alerts = [one for one in picture.alerts if matching(one.about, one.what)]
    queues = sorted((one for one in seen.queues() if matching(one.queue)), key=_order(view.sort))
    running = [one for one in picture.running or () if matching(one.task, one.queue, one.tenant)]
    groups = [one for one in picture.groups or () if matching(one.task, one.fingerprint, one.error_type)]
    hosts = {worker.id: f"{worker.host}:{worker.pid}" for worker in seen.workers or ()}
    name, wide = max(10, min(24, width - 68)), max(14, min(30, width - 58))
    nothing = "Nothing has that in its name." if wanted else ""
    return [
        Section("", [(_alert(one), Choice("alert", one)) for one in alerts], nothing or "Nothing needs you."),
        Section(
            f"{'QUEUES':<{name}}  waiting running {'dead':>5} {'oldest':>8}  {'target':>12} done/min errors slots",
            [(_queue(one, picture, name), Choice("queue", one)) for one in queues],
            UNKNOWN if seen.counts is None else nothing or "No queue has work.",
        ),
        Section(f"LANES {_lanes(picture, 10 if width >= 110 else 4)}", [], ""),
        Section(
            f"{'RUNNING':<{wide}}  {'for':>8} attempt {'queue':<10} {'tenant':<8} worker",
            [(_work(one, picture, hosts, wide), Choice("running", one)) for one in running],
            UNKNOWN if picture.running is None else nothing or "Nothing runs.",
        ),
        Section(
            f"{'FAILURES':<{wide}}  letters {'trend':<7} {'last':>8}  error",
            [(_group(one, picture, wide), Choice("failure", one)) for one in groups],
            UNKNOWN if picture.groups is None else nothing or "No dead letter waits for review.",
        ),
    ]


def _order(sort: str) -> Callable[[QueueView], Any]:
    def worst(view: QueueView) -> tuple[object, ...]:
        return (not view.late, -(view.oldest_wait or timedelta()).total_seconds(), view.queue)

    return {
        "worst": worst,
        "waiting": lambda view: (-(view.pending or 0), view.queue),
        "errors": lambda view: (-((view.done and view.done.error_rate) or 0), view.queue),
        "name": lambda view: view.queue,
    }[sort]


def _alert(alert: Alert) -> Text:
    mark, style = ("!", "bold red") if alert.bad else ("*", "yellow")
    return Text(f" {mark} {clean(alert.what)}", style)


def _queue(view: QueueView, picture: Picture, name: int) -> Text:
    seen, done = picture.seen, view.done
    target = "" if view.target is None else span(view.target)
    verdict = {True: " late", False: " ok", None: ""}[view.late]
    rate = UNKNOWN if done is None else _rate(done.done * 60 / seen.since)
    line = Text(
        f"  {_fit(view.queue, name - 2)}  {_count(view.pending, capped=seen.capped):>7} {_count(view.running):>7} "
        f"{_count(view.dead, capped=seen.capped):>5} {UNKNOWN if seen.heads is None else _long(view.oldest_wait):>8}  "
    )
    line.append(f"{target + verdict:>12}", "bold red" if view.late else "green" if view.late is False else "")
    errors = None if done is None else done.error_rate
    line.append(f" {rate:>8}")
    line.append(
        f" {UNKNOWN if done is None else _share(errors):>6}", "bold red" if (errors or 0) > 0.1 else ""
    )
    line.append(f" {_count(view.slots):>5}", "bold red" if view.slots == 0 and view.pending else "")
    return line


def _lanes(picture: Picture, wide: int) -> str:
    workers = picture.seen.workers
    who = UNKNOWN if workers is None else many(len(workers), "worker")
    if workers and picture.running is not None:
        who += f" ({len(picture.running)}/{sum(worker.slots for worker in workers)} slots)"
    if picture.seen.lanes is None:
        return f"{who}; {UNKNOWN}"
    told = [
        f"{lane.lane} {_bar(lane.used, wide)} {percent(lane.used)}"
        for lane in picture.seen.lanes
        if lane.used is not None
    ]
    return "  ".join([who, *(told or ["nobody has told of lanes yet"])])


def _bar(share: float, width: int) -> str:
    full = round(min(1.0, share) * width)
    return "█" * full + "░" * (width - full)


def _work(work: Work, picture: Picture, hosts: dict[Any, str], name: int) -> Text:
    ran = max(timedelta(), picture.seen.now - work.claimed_at)
    late = work.timeout is not None and ran.total_seconds() > work.timeout
    line = Text(f"  {_fit(work.task, name - 2)}  ")
    line.append(f"{span(ran):>8}", "bold red" if late else "cyan")
    worker = hosts.get(work.session_id, "gone" if picture.seen.workers is not None else UNKNOWN)
    line.append(
        f" {f'{work.attempt}/{work.max_attempts}':>7} {_fit(work.queue, 10)} {_fit(work.tenant or '-', 8)} {worker}"
    )
    line.append(" cancelling" if work.cancelling else "", "yellow")
    return line


def _group(group: FailureGroup, picture: Picture, name: int) -> Text:
    line = Text(f"  {_fit(group.task, name - 2)}  ")
    line.append(f"{group.letters:>7,}", "bold red" if group.trend in ("new", "rising") else "")
    said = " ".join(clean(group.message or "").split())
    error = f"{group.error_type or group.error_class}: {said}"
    line.append(f" {group.trend:<7} {ago(group.last_seen, picture.seen.now):>8}  {error}")
    return line


def _body(sections: Sequence[Section], view: View, room: int) -> list[Text]:
    """Each section gets its due, and what one does not need goes to the others."""
    wants = [max(1, len(section.rows)) if section.head[:5] != "LANES" else 0 for section in sections]
    heads = sum(1 for section in sections if section.head)
    given = _shares(wants, room - heads)
    lines: list[Text] = []
    first = 0
    for section, rows in zip(sections, given, strict=True):
        if section.head:
            lines.append(Text(section.head, "bold underline"))
        lines += _rows(section, rows, None if view.selected is None else view.selected - first)
        first += len(section.rows)
    return lines


def _shares(wants: list[int], room: int) -> list[int]:
    given = [0] * len(wants)
    while room > 0 and any(want > got for want, got in zip(wants, given, strict=True)):
        for place, want in enumerate(wants):
            if room > 0 and want > given[place]:
                given[place] += 1
                room -= 1
    return given


def _rows(section: Section, room: int, chosen: int | None) -> list[Text]:
    rows = section.rows
    if not rows:
        return [Text(f"   {section.instead}", "dim")] if section.instead and room else []
    here = chosen is not None and 0 <= chosen < len(rows)
    start = max(0, min((chosen or 0) - room + 1, len(rows) - room)) if here else 0
    lines = []
    for place, (row, _) in enumerate(rows[start : start + room], start):
        line = row.copy()
        if here and place == chosen:
            line.style = "reverse"
        lines.append(line)
    left = len(rows) - room
    if left > 0 and lines and not here:
        lines[-1] = Text(f"   … {left + 1:,} more; make the window higher, or filter with /", "dim")
    return lines


def _opened(text: str, width: int) -> list[Text]:
    import textwrap

    lines: list[Text] = [Text()]
    for paragraph in clean(text).splitlines():
        indent = " " * (len(paragraph) - len(paragraph.lstrip()))
        style = "bold" if indent == "  " else ""
        if indent == "  ":  # a command: to be copied whole
            lines.append(Text(f" {paragraph}", style))
            continue
        wrapped = textwrap.wrap(paragraph.strip(), max(20, width - 2 - len(indent))) or [""]
        lines += [Text(f" {indent}{part}", style) for part in wrapped]
    return lines


def _cut(lines: list[Text], width: int) -> list[Text]:
    for line in lines:
        line.truncate(width, overflow="ellipsis")
        if line.style == "reverse":
            line.pad_right(max(0, width - line.cell_len))
    return lines


def _fit(text: str, width: int) -> str:
    text = " ".join(clean(text).split())
    return f"{text[: width - 1]}…" if len(text) > width else f"{text:<{width}}"


def _count(number: int | None, *, capped: bool = False) -> str:
    return UNKNOWN if number is None else f"{number:,}{'+' if capped else ''}"


def _long(length: timedelta | None) -> str:
    return "-" if length is None else span(length)


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}"


def _share(share: float | None) -> str:
    return "-" if share is None else percent(share)
