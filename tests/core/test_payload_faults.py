"""What a payload may hold, and how a refusal names the guilty place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota._core.payload import DEPTH_LIMIT, problem

honest_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
honest = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | honest_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(honest_text, inner, max_size=4),
    max_leaves=20,
)


@given(value=honest, ascii_only=st.booleans())
def test_honest_json_is_accepted_however_it_is_escaped(value: object, ascii_only: bool):
    assert problem(json.dumps(value, ensure_ascii=ascii_only)) is None


@pytest.mark.parametrize(
    "text", ['"NaN and Infinity are words"', r'"\\u0000 is six letters"', r'"\ud83d\ude00"']
)
def test_text_that_only_looks_suspicious_is_accepted(text: str):
    assert problem(text) is None


def test_more_bytes_than_the_limit_are_refused():
    within = json.dumps("x" * 98)

    assert problem(within, limit=100) is None
    assert problem(json.dumps("x" * 99), limit=100) == (
        "it is 101 bytes of JSON; the limit is 100. Store the content elsewhere and pass a reference to it"
    )


def test_bytes_are_counted_not_letters():
    assert problem('"ä"', limit=4) is None
    assert problem('"ää"', limit=4) == (
        "it is 6 bytes of JSON; the limit is 4. Store the content elsewhere and pass a reference to it"
    )


def test_the_usual_limit_is_256_kilobytes():
    assert problem(json.dumps("x" * (262_144 - 2))) is None
    assert problem(json.dumps("x" * (262_144 - 1))) is not None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (r'{"user": {"name": "a\u0000b"}}', "user.name"),
        (r'{"users": [{"name": "ok"}, {"name": "\u0000"}]}', "users[1].name"),
        (r'{"a\u0000": 1}', r"the key 'a\x00'"),
        (r'"\u0000"', "the value"),
        ('{"raw": "\x00"}', "raw"),
    ],
)
def test_a_nul_character_is_refused_by_its_place(text: str, place: str):
    assert problem(text) == f"{place} contains a NUL character, which PostgreSQL cannot store. Remove it"


@pytest.mark.parametrize(
    ("text", "place"),
    [('{"rate": NaN}', "rate"), ('{"rates": [1.0, Infinity]}', "rates[1]"), ('{"low": -Infinity}', "low")],
)
def test_numbers_that_json_has_no_word_for_are_refused_by_their_place(text: str, place: str):
    assert problem(text) == (
        f"{place} is NaN or infinite, which JSON has no word for. Pass None or a text instead"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (r'{"name": "\ud800"}', "name"),
        ('{"name": "\ud800"}', "name"),
        (r'{"\udc00": 1}', r"the key '\udc00'"),
    ],
)
def test_half_of_a_letter_is_refused_by_its_place(text: str, place: str):
    assert problem(text) == (
        f"{place} contains a lone surrogate, which is not text. Decode it with errors='replace'"
    )


def test_nesting_is_bounded():
    def nested(levels: int) -> str:
        return "[" * levels + "]" * levels

    assert problem(nested(DEPTH_LIMIT)) is None
    assert problem(nested(DEPTH_LIMIT + 1)) == "it is nested more than 50 levels deep. Flatten it"


def test_a_hundred_thousand_levels_are_refused_before_they_break_a_parser():
    abyss = "[" * 100_000 + "NaN" + "]" * 100_000

    assert problem(abyss) == "it is nested more than 50 levels deep. Flatten it"


def test_brackets_inside_text_are_not_nesting():
    assert problem(json.dumps(["[" * 200, '{"\\"' * 200])) is None
    assert problem(json.dumps([{}] * 200)) is None
