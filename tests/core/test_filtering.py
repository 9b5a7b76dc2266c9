"""The filter language: what each word means, and what is said of a wrong one."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota._core.filtering import EXAMPLES, FIELDS, FilterError, parse, quoted
from rota._core.ids import public_id
from rota._core.job import State
from rota._core.job_filter import ArgumentIs, JobFilter, exact

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
JOB = UUID("0198c1a2-6f1e-7c3a-9d2b-5e8f7a6b4c3d")


def read(given: str | list[str]) -> JobFilter:
    return parse(given, now=NOW)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("", {}),
        ("state:dead", {"states": (State.DEAD,)}),
        ("state:dead,pending,dead", {"states": (State.DEAD, State.PENDING)}),
        ("queue:mail task:send_mail", {"queue": "mail", "task": "send_mail"}),
        ("tenant:acme tag:x key:k-1", {"tenant": "acme", "tag": "x", "key": "k-1"}),
        ("external:x-9 correlation:c", {"external_id": "x-9", "correlation_id": "c"}),
        ("subject:order:7", {"subject": "order:7"}),
        ('subject:"order 7"', {"subject": "order 7"}),
        ('"subject:order 7"', None),
        ('subject:"say \\"hi\\" \\\\ <x>"', {"subject": 'say "hi" \\ <x>'}),
        ("error:smtplib.SMTPException", {"error": "smtplib.SMTPException"}),
        (f"id:{JOB}", {"ids": (JOB,)}),
        (f"id:{public_id(JOB)},{UUID(int=7)}", {"ids": (JOB, UUID(int=7))}),
        (str(JOB), {"ids": (JOB,)}),
        (f"parent:{public_id(JOB)}", {"parent_id": JOB}),
        ("worker:web-1", {"worker": "web-1"}),
        ("worker:web-1:4711", {"worker": "web-1:4711"}),
        (f"worker:{JOB}", {"session_id": JOB}),
        ("priority:50", {"priority_from": 50, "priority_to": 50}),
        ("priority:<50", {"priority_to": 49}),
        ("priority<=50", {"priority_to": 50}),
        ("priority>50", {"priority_from": 51}),
        ("priority:>=50", {"priority_from": 50}),
        ("priority:10..50", {"priority_from": 10, "priority_to": 50}),
        ("priority:10..", {"priority_from": 10}),
        ("attempt>0", {"attempt_from": 1}),
        ("attempt:2", {"attempt_from": 2, "attempt_to": 2}),
        ("attempt:<=3", {"attempt_to": 3}),
        ("order:priority", {"by_priority": True}),
        ("order:oldest", {"oldest_first": True}),
        ("order:newest", {}),
        ("args.user.id:7", {"args": (ArgumentIs(("user", "id"), "7"),)}),
        (
            'args.a:1 args.b:"two words"',
            {"args": (ArgumentIs(("a",), "1"), ArgumentIs(("b",), "two words"))},
        ),
        (["subject:order 7", "tag:x queue:mail"], {"subject": "order 7", "tag": "x", "queue": "mail"}),
    ],
)  # fmt: skip
def test_each_word_narrows_by_what_it_says(words, meant):
    if meant is None:
        with pytest.raises(FilterError):
            read(words)
    else:
        assert read(words) == JobFilter(**meant)


@pytest.mark.parametrize(
    ("word", "begin", "end"),
    [
        ("created>1h", NOW - timedelta(hours=1), None),
        ("created:>=1h30m", NOW - timedelta(minutes=90), None),
        ("created<2d", None, NOW - timedelta(days=2)),
        ("created<2026-11-01", None, datetime(2026, 11, 1, tzinfo=UTC)),
        ("created<=2026-11-01", None, datetime(2026, 11, 2, tzinfo=UTC)),
        ("created>2026-11-01T09:30+01:00", datetime(2026, 11, 1, 8, 30, tzinfo=UTC), None),
        ("created:2026-11-01", datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)),
        ("created:2h..1h", NOW - timedelta(hours=2), NOW - timedelta(hours=1)),
        ("created:1h..", NOW - timedelta(hours=1), None),
        (
            "created:2026-11-01..2026-11-03",
            datetime(2026, 11, 1, tzinfo=UTC),
            datetime(2026, 11, 4, tzinfo=UTC),
        ),
    ],
)
def test_times_are_so_long_ago_or_a_date_in_utc(word, begin, end):
    assert read(word) == JobFilter(created_from=begin, created_until=end)
    ended = word.replace("created", "finished")
    assert read(ended) == JobFilter(finished_from=begin, finished_until=end)


def test_both_sides_of_a_range_may_be_words_of_their_own():
    assert read("created>2d created<1d") == JobFilter(
        created_from=NOW - timedelta(days=2), created_until=NOW - timedelta(days=1)
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("status:dead", "there is no field 'status'. Did you mean state:dead?"),
        ("quue:mail", "there is no field 'quue'. Did you mean queue:mail?"),
        ("State:dead", "Did you mean state:dead?"),
        ("payload.user.id:7", "Did you mean args.user.id:7?"),
        ("args:7", "Did you mean args.NAME:7?"),
        ("zzz:1", "there is no field 'zzz'. There are state, queue, task,"),
        ("state:pendign", "there is no state 'pendign'. Did you mean state:pending?"),
        ("state:failed", "there is no state 'failed'. Did you mean state:dead?"),
        ("send_mail", "it has no field. Write task:send_mail, queue:send_mail or another of state,"),
        ("queue:", "it has no value. Write for example queue:mail."),
        ('queue:""', "it has no value"),
        ("queue:a queue:b", "'queue:a' is there too"),
        ("state:dead state:held", "a job has one state. Several: state:dead,pending."),
        ("created>1d created>2d", "'created>1d' is there too"),
        ("task>5", "task has no order: write task:5."),
        ("args.:7", "the name of an argument is missing. Write for example args.user.id:7."),
        ("args.a..b:7", "the name of an argument is missing"),
        ("priority:high", "'high' is not a priority: a whole number from 0 to 32767"),
        ("priority:40000", "'40000' is not a priority"),
        ("attempt>many", "'many' is not a number of attempts: a whole number from 0 to 32767."),
        ("attempts>0", "Did you mean attempt>0?"),
        ("state:retrying", "Did you mean state:pending attempt>0?"),
        ("created:1h", "say which side is meant: created>1h is later than that, created<1h before it."),
        ("created>yesterday", "'yesterday' is neither a length of time"),
        ("created>90", "'90' is neither a length of time"),
        ("created:..", "it has no end"),
        ("id:abc", "'abc' is not a job id"),
        ("order:random", "there is no order 'random'. Orders are newest, oldest and priority."),
        ('subject:"order 7', "a double quote is not closed"),
        ("queue:a\0b", "a character that no job can hold"),
        ("queue:\ud800", "a character that no job can hold"),
    ],
)
def test_a_wrong_word_is_named_with_what_to_write_instead(words, said):
    with pytest.raises(FilterError) as wrong:
        read(words)

    assert said in str(wrong.value)
    assert wrong.value.word in words
    assert repr(wrong.value.word) in str(wrong.value)


def test_a_field_that_the_caller_decides_may_be_said_again_but_not_otherwise():
    assert parse("queue:mail", now=NOW, queue="mail", limit=7) == JobFilter(queue="mail", limit=7)
    with pytest.raises(FilterError, match=r"'queue:mail'.* with another value"):
        parse("queue:mail", now=NOW, queue="slow")


def test_every_field_has_an_example_that_is_understood():
    for field in FIELDS:
        assert read(EXAMPLES[field]) != JobFilter()
    everything = " ".join(example for field, example in EXAMPLES.items() if field != "order")
    assert read(everything).args == (ArgumentIs(("user", "id"), "7"),)


@given(st.text(max_size=60))
def test_whatever_is_typed_is_a_filter_or_a_wrong_word(text):
    for words in (text, [text]):
        with suppress(FilterError):
            assert isinstance(read(words), JobFilter)


@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
)
def test_any_value_can_be_said_in_quotes(value):
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')

    assert read(f'subject:"{escaped}" queue:mail') == JobFilter(subject=value, queue="mail")


@pytest.mark.parametrize(
    ("path", "value", "payload", "fits"),
    [
        ("user.id", "7", '{"user": {"id": 7}}', True),
        ("user.id", "7", '{"user": {"id": "7"}}', True),
        ("user.id", "7", '{"user": {"id": 7.0}}', True),
        ("user.id", "7", '{"user": {"id": 77}}', False),
        ("user.id", "7", '{"user": 7}', False),
        ("user", "7", '{"user": {"id": 7}}', False),
        ("flag", "true", '{"flag": true}', True),
        ("flag", "1", '{"flag": true}', False),
        ("flag", "null", '{"flag": null}', True),
        ("flag", "null", "{}", False),
        ("n", "12345678901234567890", '{"n": 12345678901234567890}', True),
        ("n", "12345678901234567890", '{"n": 12345678901234567891}', False),
        ("n", "0.1", '{"n": 0.10}', True),
        ("tags", "red", '{"tags": ["blue", "red"]}', True),
        ("items.sku", "a", '{"items": [{"sku": "b"}, {"sku": "a"}]}', True),
        ("items.sku", "a", '{"items": [[{"sku": "a"}]]}', False),
        ("name", "Ann", '{"name": "ann"}', False),
    ],
)  # fmt: skip
def test_an_argument_fits_as_a_value_or_as_text_and_in_lists_by_its_elements(path, value, payload, fits):
    assert ArgumentIs(tuple(path.split(".")), value).matches(exact(payload)) is fits


@pytest.mark.parametrize("value", [">late", "<5", "two words", 'a"b', "a\\b", "a:b,c", "..", "*"])
def test_a_value_that_a_page_writes_is_read_as_it_is(value):
    assert read(f"queue:{quoted(value)} state:dead") == JobFilter(queue=value, states=(State.DEAD,))
