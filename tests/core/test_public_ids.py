"""Public ids: the same id in two forms, and mistakes that are caught."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota._core.ids import ALPHABET, CHECKS, parse_id, public_id

ids = st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number))
PLACES = [place for place in range(33) if (place + 1) % 5]  # of the symbols; every fifth is a hyphen


@given(job_id=ids)
def test_an_id_is_read_back_from_either_form(job_id: UUID):
    assert parse_id(public_id(job_id)) == job_id
    assert parse_id(str(job_id)) == job_id
    assert parse_id(job_id.hex.upper()) == job_id


@given(job_id=ids)
def test_case_hyphens_spaces_and_look_alikes_do_not_matter(job_id: UUID):
    written = public_id(job_id)

    assert parse_id(written.lower()) == job_id
    assert parse_id(written.replace("-", "")) == job_id
    assert parse_id(f"  {written}\n") == job_id
    assert parse_id(written.replace("0", "o").replace("1", "l")) == job_id
    assert parse_id(written.replace("1", "I")) == job_id


@given(job_id=ids, place=st.sampled_from(PLACES[:-1]), symbol=st.sampled_from(ALPHABET))
def test_one_mistyped_symbol_is_caught(job_id: UUID, place: int, symbol: str):
    written = public_id(job_id)
    mistyped = written[:place] + symbol + written[place + 1 :]

    if mistyped == written:
        assert parse_id(mistyped) == job_id
    else:
        with pytest.raises(ValueError, match="check symbol does not fit"):
            parse_id(mistyped)


@given(job_id=ids, place=st.integers(0, 24))
def test_two_swapped_neighbours_are_caught(job_id: UUID, place: int):
    symbols = list(public_id(job_id).replace("-", ""))
    symbols[place], symbols[place + 1] = symbols[place + 1], symbols[place]
    swapped = "".join(symbols)

    if swapped == public_id(job_id).replace("-", ""):
        assert parse_id(swapped) == job_id
    else:
        with pytest.raises(ValueError, match="check symbol does not fit"):
            parse_id(swapped)


def test_the_form_for_people_is_known_exactly():
    assert public_id(UUID(int=0)) == "0000-0000-0000-0000-0000-0000-000"
    assert public_id(UUID(int=2**128 - 1)) == "7ZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZ" + CHECKS[(2**128 - 1) % 37]
    assert parse_id("0000-0000-0000-0000-0000-0000-011") == UUID(int=1)


@given(first=ids, second=ids)
def test_public_ids_sort_like_the_ids_themselves(first: UUID, second: UUID):
    assert (public_id(first)[:-1] < public_id(second)[:-1]) == (first < second)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hello",
            (
                "'hello' is not a job id: expected a UUID, or 26 Base32 symbols and a check symbol (got 5 symbols). "
                "`rota jobs list` shows the ids of jobs."
            ),
        ),
        (
            "0000-0000-0000-0000-0000-0000-U11",
            "'0000-0000-0000-0000-0000-0000-U11' is not a job id: 'U' is not a Base32 symbol. Copy the id again.",
        ),
        (
            "0000-0000-0000-0000-0000-0000-012",
            (
                "'0000-0000-0000-0000-0000-0000-012' is not a job id: its check symbol does not fit, "
                "so a symbol is mistyped."
            ),
        ),
        (
            "Z" * 27,
            f"'{'Z' * 27}' is not a job id: its check symbol does not fit, so a symbol is mistyped.",
        ),
    ],
)
def test_what_is_no_id_is_refused_with_the_reason(text: str, message: str):
    with pytest.raises(ValueError) as refused:
        parse_id(text)

    assert str(refused.value) == message
