"""One priority convention, and the edges to those of the five systems."""

from __future__ import annotations

import pytest

from rota._core import priority


@pytest.mark.req("D12")
def test_delphi_counts_upwards_from_0_to_100():
    assert [priority.from_delphi(given) for given in (100, 80, 50, 0)] == [0, 40, 100, 200]
    assert [priority.to_delphi(priority.from_delphi(given)) for given in range(101)] == list(range(101))
    assert priority.to_delphi(priority.LOWEST) == 0


@pytest.mark.req("W37")
def test_doc20_has_four_levels():
    assert [priority.from_doc20(level) for level in range(4)] == [0, 50, 100, 200]
    assert [priority.to_doc20(priority.from_doc20(level)) for level in range(4)] == [0, 1, 2, 3]
    assert [priority.to_doc20(given) for given in (10, 60, 110, 199, 32_767)] == [0, 1, 2, 3, 3]


@pytest.mark.req("L9")
def test_lipas_counts_as_we_do():
    assert [priority.from_lipas(given) for given in (0, 90, 100, 110)] == [0, 90, 100, 110]


def test_datajoint_counts_in_steps_of_twenty():
    assert [priority.from_datajoint(given) for given in (0, 1, 5, 255)] == [0, 20, 100, 5100]
    assert priority.from_datajoint(10_000) == priority.LOWEST
    assert [priority.to_datajoint(priority.from_datajoint(given)) for given in range(256)] == list(range(256))


def test_docverse_knows_only_normal():
    assert priority.from_docverse() == priority.NORMAL == 100


def test_every_seeds_default_is_normal():
    assert {
        priority.from_delphi(50),
        priority.from_doc20(2),
        priority.from_lipas(100),
        priority.from_datajoint(5),
        priority.from_docverse(),
    } == {priority.NORMAL}


@pytest.mark.parametrize("given", [-1, 32_768, 1.5, "high", True, None])
def test_a_priority_that_cannot_be_stored_is_refused(given: object):
    with pytest.raises(ValueError) as refused:
        priority.checked(given)  # type: ignore[arg-type]

    assert str(refused.value) == (
        f"priority {given!r} is not a whole number from 0 (first) to 32767 (last); 100 is normal."
    )


@pytest.mark.parametrize("given", [0, 100, 32_767])
def test_a_priority_that_fits_is_taken_as_it_is(given: int):
    assert priority.checked(given) == given


@pytest.mark.parametrize(
    ("convert", "given", "message"),
    [
        (priority.from_delphi, 101, "a Delphi priority is 0..100 (100 most urgent), not 101."),
        (priority.from_delphi, -1, "a Delphi priority is 0..100 (100 most urgent), not -1."),
        (priority.from_doc20, 4, "a DOC-20 priority is 0, 1, 2 or 3, not 4."),
        (priority.from_datajoint, -1, "a DataJoint priority is 0 or more, not -1."),
    ],
)
def test_a_foreign_priority_out_of_its_range_is_refused(convert, given: int, message: str):
    with pytest.raises(ValueError) as refused:
        convert(given)

    assert str(refused.value) == message
