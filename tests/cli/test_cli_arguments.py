"""Arguments as they are typed become the JSON that the task wants."""

from __future__ import annotations

import pytest

from rota.cli.arguments import check, kinds, payload_from
from rota.errors import PayloadInvalid

SCHEMA = {
    "properties": {
        "to": {"type": "string"},
        "account": {"type": "integer"},
        "rate": {"type": "number"},
        "urgent": {"type": "boolean"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "level": {"$ref": "#/$defs/Level"},
        "anything": {},
    },
    "required": ["to"],
    "additionalProperties": False,
    "$defs": {"Level": {"enum": ["low", "high"]}},
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("to=7", "7"),
        ("to=true", "true"),
        ("to=a=b", "a=b"),
        ("to=", ""),
        ("account=7", 7),
        ("account=seven", "seven"),
        ("rate=1.5", 1.5),
        ("rate=2", 2),
        ("urgent=true", True),
        ("note=null", None),
        ("note=7", "7"),
        ("sizes=[1, 2]", [1, 2]),
        ("level=low", "low"),
        ("anything=7", 7),
        ("anything=seven", "seven"),
        ("anything=007", "007"),
        ("anything=NaN", "NaN"),
        ("unknown={}", {}),
        ('to:="7"', "7"),
        ("account:=7", 7),
    ],
)
def test_a_pair_becomes_the_value_that_the_schema_wants(pair, value):
    [found] = payload_from([pair], None, SCHEMA).values()

    assert (type(found), found) == (type(value), value)


def test_pairs_come_on_top_of_the_document():
    assert payload_from(["account=8"], '{"to": "a@b.c", "account": 7}', SCHEMA) == {
        "to": "a@b.c",
        "account": 8,
    }


@pytest.mark.parametrize(
    ("pairs", "document", "words"),
    [
        (["to"], None, "'to' is not an argument. Write name=value, or name:=JSON, or give --json FILE."),
        (["=x"], None, "'=x' is not an argument."),
        (["sizes:=[1"], None, "the value of sizes is not JSON: "),
        (["rate:=NaN"], None, "the value of rate is not JSON: NaN is not a JSON value"),
        ([], "{", "the payload is not JSON: "),
        (
            [],
            "[1]",
            'the payload is array, and must be an object of arguments by name, such as {"to": "a@b.c"}.',
        ),
    ],
)
def test_what_is_no_argument_is_said_to_be_none(pairs, document, words):
    with pytest.raises(PayloadInvalid) as refused:
        payload_from(pairs, document, SCHEMA)

    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({}, "mail needs the argument 'to'. It takes: to, [account], [rate]"),
        (
            {"to": "a", "acount": 7},
            "mail has no argument 'acount'. Did you mean 'account'? It takes: to, [account]",
        ),
        ({"to": 7}, "mail: to is 7, and must be string."),
        ({"to": "a", "account": "x"}, 'mail: account is "x", and must be integer.'),
        ({"to": "a", "account": True}, "mail: account is true, and must be integer."),
        ({"to": "a", "note": 7}, "mail: note is 7, and must be null or string."),
    ],
)
def test_what_plainly_does_not_fit_is_refused_with_what_would(payload, words):
    with pytest.raises(PayloadInvalid) as refused:
        check("mail", payload, SCHEMA)

    assert str(refused.value).startswith(words)


def test_what_fits_passes():
    check("mail", {"to": "a", "account": 7, "rate": 2, "note": None, "level": "low", "anything": []}, SCHEMA)


def test_a_task_without_a_schema_takes_everything():
    check("mail", {"whatever": 7}, {})


def test_a_choice_that_includes_something_unsaid_says_nothing():
    assert kinds({"anyOf": [{"type": "string"}, {}]}, {}) == frozenset()
