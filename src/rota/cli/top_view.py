"""What a person has chosen in `rota top`: keys in, a new view out. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

SORTS = ("worst", "waiting", "errors", "name")
_KEYS = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "erase",
    "\x08": "erase",
    "\x03": "quit",  # a terminal that does not turn Ctrl-C into a signal
    "\x04": "quit",
}
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[A-Za-z])|.", re.DOTALL)


class View(NamedTuple):
    """How the picture is looked at."""

    sort: str = SORTS[0]
    wanted: str = ""
    """Only what has this in its name."""
    typing: bool = False
    """Keys are the letters of `wanted`."""
    paused: bool = False
    selected: int | None = None
    """Which line, counted over all that can be chosen; None: none yet."""
    opened: bool = False
    """The chosen one is shown in full."""
    helped: bool = False
    refresh: int = 0
    """Grows when a new picture is wanted now."""
    quit: bool = False


def keys(typed: str) -> list[str]:
    """What was typed, key by key: names for those that write nothing."""
    return [_KEYS.get(found, found) for found in _SEQUENCE.findall(typed)]


def press(view: View, key: str, choices: int) -> View:
    """The view after one key; `choices` is how many lines can be chosen."""
    if view.typing:
        return _type(view, key)
    match key:
        case "q" | "quit":
            return view._replace(quit=True)
        case "escape" if view.opened or view.helped:
            return view._replace(opened=False, helped=False)
        case "escape":
            return view._replace(wanted="", selected=None)
        case "?" | "h":
            return view._replace(helped=not view.helped, opened=False)
        case " " | "p":
            return view._replace(paused=not view.paused)
        case "s":
            return view._replace(sort=SORTS[(SORTS.index(view.sort) + 1) % len(SORTS)])
        case "r":
            return view._replace(refresh=view.refresh + 1)
        case "/":
            return view._replace(typing=True, opened=False, helped=False)
        case "enter" if choices:
            return view._replace(
                opened=not view.opened, helped=False, selected=_within(view.selected or 0, choices)
            )
        case "up" | "k" | "down" | "j" | "page up" | "page down" if choices:
            step = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -10, "page down": 10}[key]
            chosen = 0 if view.selected is None else view.selected + step
            return view._replace(selected=_within(chosen, choices), helped=False)
        case _:
            return view


def _type(view: View, key: str) -> View:
    match key:
        case "enter":
            return view._replace(typing=False, selected=None)
        case "escape":
            return view._replace(typing=False, wanted="", selected=None)
        case "erase":
            return view._replace(wanted=view.wanted[:-1])
        case _ if len(key) == 1 and key.isprintable():
            return view._replace(wanted=(view.wanted + key)[:40])
        case _:
            return view


def _within(place: int, choices: int) -> int:
    return max(0, min(place, choices - 1))
