"""docs/requirements.md says the truth about which test proves what."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_all_requirements_and_scenarios_are_listed_once_and_in_order(requirements):
    wanted = [
        *(f"D{n}" for n in range(1, 37)),
        *(f"W{n}" for n in range(1, 39)),
        *(f"L{n}" for n in range(1, 44)),
        *(f"J{n}" for n in range(1, 28)),
        *(f"V{n}" for n in range(1, 39)),
        *(str(n) for n in range(1, 21)),
    ]

    assert list(requirements.listed(requirements.PAGE.read_text())) == wanted


def test_the_table_is_up_to_date(requirements):
    page = requirements.PAGE.read_text()

    assert requirements.renewed(page, requirements.proofs()) == page, "run `make requirements`"


def test_every_mark_names_a_real_number(requirements):
    known = requirements.listed(requirements.PAGE.read_text()).keys()
    unknown = [
        f"{proof.path}::{proof.name} carries {number!r}"
        for proof in requirements.proofs()
        for number in proof.numbers
        if number not in known
    ]

    assert not unknown, "\n".join(unknown)


def test_no_test_carries_more_than_three_requirements(requirements):
    heavy = [
        f"{proof.path}::{proof.name} has {proof.heaviest}"
        for proof in requirements.proofs()
        if proof.heaviest > 3
    ]

    assert not heavy, "\n".join(heavy)


STORY = """
import pytest

@pytest.mark.req("W14", "W15")
@pytest.mark.scenario(9)
@pytest.mark.parametrize("n", [
    pytest.param(1, marks=pytest.mark.req("D1")),
    pytest.param(2, marks=pytest.mark.req("D2")),
])
async def test_one_key_is_one_job(n): ...

def test_without_marks(): ...
"""


def test_marks_are_read_from_decorators_and_parameters(requirements, tmp_path):
    (tmp_path / "test_story.py").write_text(STORY)

    [proof] = requirements.proofs(tmp_path)

    assert set(proof.numbers) == {"W14", "W15", "9", "D1", "D2"}
    assert proof.heaviest == 3


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (
            'import pytest\npytestmark = pytest.mark.req("W1")\ndef test_a(): ...',
            "on the test functions themselves",
        ),
        (
            'import pytest\n@pytest.mark.req("W1")\nclass TestA:\n    def test_a(self): ...',
            "on the test functions themselves",
        ),
        ('import pytest\n@pytest.mark.req("W1")\ndef fixture(): ...', "is not a test"),
        ("import pytest\nW = 'W1'\n@pytest.mark.req(W)\ndef test_a(): ...", "write the number itself"),
    ],
)
def test_a_mark_that_would_count_for_nothing_is_an_error(requirements, tmp_path, text, trouble):
    (tmp_path / "test_story.py").write_text(text)

    with pytest.raises(requirements.BadMark, match=trouble):
        requirements.proofs(tmp_path)


def test_the_page_is_written_with_the_sentence_of_each_test(requirements):
    proof = requirements.Proof(requirements.TESTS / "house" / "test_x.py", "test_keys_are_kept", ("W14",), 1)

    assert requirements.renewed("| W14 | One key. | old |\n| W15 | Two. | |\n", [proof]) == (
        "| W14 | One key. | [keys are kept](../tests/house/test_x.py) |\n| W15 | Two. | |\n"
    )


def test_the_command_prints_the_coverage_and_changes_nothing_unasked(requirements):
    before = requirements.PAGE.read_text()
    done = subprocess.run([sys.executable, requirements.__file__], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "of 182 requirements proven" in done.stdout
    assert requirements.PAGE.read_text() == before
