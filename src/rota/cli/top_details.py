"""What `rota top` says of the line that somebody chose: why it is so, and what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.cli.words import ago, many, span

if TYPE_CHECKING:
    from rota._core.dead_letter import FailureGroup
    from rota._core.happening import Work
    from rota.admin import Admin
    from rota.admin.alerts import Alert
    from rota.admin.numbers import QueueView
    from rota.cli.top_screen import Choice

STACK_SHOWN = 12


async def details(admin: Admin, choice: Choice) -> str:
    """The chosen thing in words; lines that are indented by two are commands."""
    match choice.kind:
        case "alert":
            return await _alert(admin, choice.of)
        case "queue":
            return await _queue(admin, choice.of)
        case "running":
            return await _running(admin, choice.of)
        case _:
            return await _failure(admin, choice.of)


async def _alert(admin: Admin, alert: Alert) -> str:
    kind, _, name = alert.about.partition(":")
    lines = [f"{alert.what[:1].upper()}{alert.what[1:]}.", "", f"{alert.do}."]
    first = await admin.explain_first(**{kind: name}) if kind in ("queue", "task") else None
    if first is not None:
        lines += [
            "",
            f"Job {first.job_id} waits there, for example:",
            "",
            str(first),
            "",
            f"  rota jobs why {first.job_id}",
        ]
    return "\n".join(lines)


async def _queue(admin: Admin, view: QueueView) -> str:
    lines = [f"Queue {view.queue}."]
    if view.target is not None:
        late = {True: "It is behind that.", False: "It keeps that.", None: ""}[view.late]
        lines.append(f"A due job should wait {span(view.target)} at most. {late}")
    if view.done is not None and view.done.attempts:
        p50, p95 = view.done.wait(0.5) or 0.0, view.done.wait(0.95) or 0.0
        lines.append(
            f"Lately half of its jobs waited {span(p50)} or less, and one in twenty {span(p95)} or more."
        )
    first = await admin.explain_first(queue=view.queue)
    if first is None:
        return "\n".join([*lines, "Nothing waits in it."])
    return "\n".join(
        [
            *lines,
            "",
            f"Job {first.job_id} waits there, for example:",
            "",
            str(first),
            "",
            f"  rota jobs why {first.job_id}",
            f"  rota jobs list --queue {view.queue} --state pending",
        ]
    )


async def _running(admin: Admin, work: Work) -> str:
    why = await admin.explain(work.id)
    which = f"Job {work.id} ({work.task}), attempt {work.attempt} of {work.max_attempts}"
    return "\n".join(
        [
            f"{which}, claimed at {work.claimed_at:%H:%M:%S} UTC.",
            "",
            str(why),
            "",
            f"  rota jobs logs {work.id}",
            f"  rota tail --job {work.id}",
            f"  rota jobs cancel {work.id}",
        ]
    )


async def _failure(admin: Admin, group: FailureGroup) -> str:
    view = await admin.failure(group.fingerprint)
    found = view.group
    seen = f"first {ago(found.first_seen, view.now)}, last {ago(found.last_seen, view.now)}"
    hours = f"{found.last_hour:,} in the last hour, {found.hour_before:,} in the one before"
    lines = [
        f"{many(found.letters, 'dead letter')} of {found.task}, {found.trend}: {seen}; {hours}.",
        f"{found.error_type or found.error_class}: {found.message}",
    ]
    if found.frame:
        lines.append(f"Where: {found.frame}")
    lines += [
        "",
        f"  rota failures show {found.fingerprint}",
        f"  rota dlq show {found.example}",
        f"  rota failures retry {found.fingerprint} --dry-run",
        f"  rota dlq ack --group {found.fingerprint} --dry-run",
    ]
    if view.stack:
        lines += [
            "",
            "The stack of the newest one ends so:",
            *view.stack.rstrip().splitlines()[-STACK_SHOWN:],
        ]
    return "\n".join(lines)
