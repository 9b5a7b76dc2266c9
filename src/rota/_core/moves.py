"""The legal moves of a job: one table, from which code, tests and docs/lifecycle.md are drawn."""

from __future__ import annotations

from typing import NamedTuple

from rota._core.job import State

P, B, H, R = State.PENDING, State.BLOCKED, State.HELD, State.RUNNING
C, PART, D, X = State.COMPLETED, State.PARTIAL, State.DEAD, State.CANCELLED


class Move(NamedTuple):
    """One arrow: who may take it, and what it means."""

    origin: State | None
    target: State
    verb: str
    who: str
    meaning: str


MOVES: tuple[Move, ...] = (
    Move(None, P, "enqueue", "producer", "stored and due at run_at"),
    Move(None, B, "enqueue", "producer", "stored; waits for other jobs"),
    Move(None, H, "enqueue", "producer", "stored, but set aside"),
    Move(B, P, "unblock", "engine", "the last job it waited for ended well"),
    Move(P, R, "claim", "worker", "one session owns it; attempt + 1"),
    Move(R, C, "complete", "worker", "the handler returned; result stored"),
    Move(R, PART, "complete", "worker", "the handler returned, some items failed"),
    Move(R, P, "retry", "worker", "failed or lost, attempts left; runs again after a pause"),
    Move(
        R,
        P,
        "suspect",
        "engine",
        "its process died with others in it; runs alone next, the attempt is given back",
    ),
    Move(R, P, "park", "worker", "its task is parked; the attempt is given back"),
    Move(R, P, "snooze", "worker", "asked to be run later; the attempt is given back"),
    Move(R, P, "hand back", "worker", "shutdown or unknown task; the attempt is given back"),
    Move(R, D, "die", "worker", "no attempts left, or beyond help; waits for review"),
    Move(R, X, "cancel", "worker", "confirmed a cancel, or the handler asked for it"),
    Move(R, X, "supersede", "engine", "a newer job with its unique key took its place"),
    Move(P, X, "cancel", "operator", "taken off the list before it started"),
    Move(B, X, "cancel", "operator", "taken off the list before it started"),
    Move(H, X, "cancel", "operator", "taken off the list before it started"),
    Move(P, H, "hold", "operator", "set aside until released"),
    Move(H, P, "release", "operator", "back on the list"),
    Move(P, P, "edit", "operator", "new arguments, priority, queue or time"),
    Move(H, H, "edit", "operator", "new arguments, priority, queue or time"),
    Move(P, D, "kill", "operator", "moved to the dead by hand"),
    Move(H, D, "kill", "operator", "moved to the dead by hand"),
    Move(B, D, "kill", "operator", "moved to the dead by hand"),
    Move(R, D, "kill", "operator", "moved to the dead by hand; its worker is fenced"),
    Move(R, P, "fail", "operator", "this attempt is failed by hand; its worker is fenced"),
    Move(R, D, "fail", "operator", "its last attempt is failed by hand; its worker is fenced"),
    Move(D, P, "retry", "operator", "runs again from its first attempt, history kept"),
    Move(X, P, "retry", "operator", "runs again from its first attempt, history kept"),
)

LEGAL = frozenset((move.origin, move.target) for move in MOVES)


def legal(origin: State | None, target: State) -> bool:
    return (origin, target) in LEGAL


def diagram() -> str:
    """The moves as a Mermaid state diagram, in the table's order."""
    lines = ["stateDiagram-v2"]
    arrows: dict[tuple[str, str], list[str]] = {}
    for move in MOVES:
        arrow = (move.origin.value if move.origin else "[*]", move.target.value)
        if move.verb not in arrows.setdefault(arrow, []):
            arrows[arrow].append(move.verb)
    lines += [f"    {origin} --> {target}: {', '.join(verbs)}" for (origin, target), verbs in arrows.items()]
    lines += [f"    {state.value} --> [*]" for state in (C, PART, D, X)]
    return "\n".join(lines)
