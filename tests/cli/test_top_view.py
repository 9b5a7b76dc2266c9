"""Keys of `rota top`, one by one: what each changes, and what none of them can."""

from __future__ import annotations

import pytest

from rota.cli.top_view import SORTS, View, keys, press


def after(*typed: str, choices: int = 5, view: View | None = None) -> View:
    view = view or View()
    for key in keys("".join(typed)):
        view = press(view, key, choices)
    return view


def test_sequences_of_a_terminal_are_one_key_each():
    assert keys("\x1b[A\x1bOBx\r\x1b[6~\x1b") == ["up", "down", "x", "enter", "page down", "escape"]


def test_a_line_is_chosen_by_arrows_and_stays_within_what_is_there():
    assert after("j").selected == 0
    assert after("jjj").selected == 2
    assert after("jjjkkkkkk").selected == 0
    assert after("\x1b[B" * 20).selected == 4
    assert after("j", choices=0).selected is None


def test_enter_opens_the_chosen_line_and_escape_goes_back():
    opened = after("jj\r")

    assert (opened.opened, opened.selected) == (True, 1)
    assert after("j", view=opened).selected == 2
    assert not after("\x1b", view=opened).opened
    assert not after("\r", choices=0).opened


def test_a_filter_is_typed_letter_by_letter_and_dropped_by_escape():
    typing = after("/maq")

    assert (typing.typing, typing.wanted, typing.quit) == (True, "maq", False)
    kept = after("\x7fil\r", view=typing)
    assert (kept.typing, kept.wanted) == (False, "mail")
    assert after("\x1b", view=kept).wanted == ""
    assert after("\x1b", view=typing).typing is False


def test_sorting_goes_round():
    assert [after("s" * times).sort for times in range(len(SORTS) + 1)] == [*SORTS, SORTS[0]]


def test_pause_refresh_help_and_quit():
    assert after("p").paused
    assert not after("p ").paused
    assert after("r").refresh == 1
    assert after("?").helped
    assert not after("?\x1b").helped
    assert after("q").quit
    assert after("\x04").quit


@pytest.mark.parametrize("key", ["\x1b[200~", "\x00", "é", "\x1b[1;5C", "Z"])
def test_other_keys_do_nothing(key):
    assert after(key) == View()
