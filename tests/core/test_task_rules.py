"""The rules of a task's keys as data: what the code says, the registry repeats."""

from __future__ import annotations

import json

import pytest

from rota._core.job import OnDuplicate, Scope
from rota._core.rules import KeyRule, TaskRules
from rota.errors import EnqueueError

FULL = TaskRules(
    key=KeyRule("order"),
    unique=KeyRule("site", "7"),
    serial=KeyRule("account"),
    unique_scope=Scope.WINDOW,
    unique_window=60.0,
    on_duplicate=OnDuplicate.REJECT,
    tags=("a", "b"),
)


@pytest.mark.parametrize(
    "rules", [TaskRules(), FULL, TaskRules(unique=KeyRule(None)), TaskRules(tags=("x",))]
)
def test_rules_survive_the_registry(rules):
    assert TaskRules.from_json(json.loads(json.dumps(rules.as_json()))) == rules


def test_a_task_without_rules_says_nothing():
    assert TaskRules().as_json() == {}
    assert TaskRules().terms("send", {"to": "ann"}, ()) == {}


def test_keys_are_the_texts_of_arguments_and_defaults_where_they_are_not_given():
    assert FULL.terms("send", {"order": "A-1", "account": 12}, ()) == {
        "key": "A-1",
        "unique_key": "7",
        "serial": "12",
        "unique_scope": Scope.WINDOW,
        "unique_window": 60.0,
        "on_duplicate": OnDuplicate.REJECT,
        "tags": ("a", "b"),
    }


def test_what_is_said_goes_before_the_rule_and_an_argument_that_is_none_gives_no_key():
    said = {"key": "mine", "unique_key": "mine", "tags": ("c",)}

    assert FULL.terms("send", {"order": "A-1", "account": None}, said) == {}


def test_a_rule_that_only_the_code_knows_is_refused_unless_the_key_is_said():
    rules = TaskRules(unique=KeyRule(None))

    with pytest.raises(EnqueueError) as refused:
        rules.terms("send", {}, ())

    assert str(refused.value) == (
        "send finds its unique key by a function of its code, which is not here. Nothing was stored. Enqueue it where "
        "its code is, or give the key yourself."
    )
    assert rules.terms("send", {}, {"unique_key": "x"}) == {}


@pytest.mark.parametrize(("value", "why"), [("", "empty"), ("ä" * 501, "too long")])
def test_an_argument_that_cannot_be_a_key_is_refused(value, why):
    with pytest.raises(EnqueueError) as refused:
        TaskRules(key=KeyRule("order")).terms("send", {"order": value}, ())

    assert str(refused.value) == (
        f"the key of send is its argument 'order', and that is {why}. Nothing was stored. A key has 1 to 1000 bytes."
    )
