"""Like failures have one fingerprint, and others another."""

from __future__ import annotations

import json

import pytest

from rota._core.failure import ErrorClass, Failure
from rota._core.fingerprint import fingerprint, normalised, top_frame

STACK = """Traceback (most recent call last):
  File "/srv/shop/releases/20260504/shop/mail.py", line {line}, in send
    deliver(order)
  File "/srv/shop/venv/lib/python3.12/site-packages/smtp/client.py", line 99, in deliver
    raise Refused(order)
smtp.Refused: order {order}
"""


ONE = STACK.format(line=12, order=7)


def kind(task="mail", error_type="smtp.Refused", message="order 7", stack=ONE):
    return fingerprint(task, error_type, message, stack).value


def test_the_top_frame_of_the_application_is_found_under_those_of_libraries():
    assert top_frame(STACK.format(line=12, order=7)) == "shop/mail.py in send"


def test_the_place_is_shown_as_it_is_and_grouped_without_its_numbers():
    first, second = (
        fingerprint("bad", "KeyError", "", f'  File "/srv/p{n}/jobs.py", line 3, in bad') for n in (1, 2)
    )

    assert (first.frame, second.frame) == ("p1/jobs.py in bad", "p2/jobs.py in bad")
    assert first.value == second.value


def test_another_order_another_line_and_another_release_are_the_same_failure():
    stack = STACK.format(line=4711, order=8).replace("20260504", "20260601")

    assert kind() == kind(message="order 8", stack=stack)
    assert len(kind()) == 12


@pytest.mark.parametrize(
    "other",
    [
        {"task": "export"},
        {"error_type": "OSError"},
        {"stack": STACK.format(line=12, order=7).replace("in send", "in resend")},
        {"stack": STACK.format(line=12, order=7).replace("shop/mail.py", "shop/post.py")},
    ],
)
def test_another_task_exception_or_place_is_another_failure(other):
    assert kind() != kind(**other)


def test_without_a_stack_the_message_counts_but_not_its_numbers():
    def dead(message: str) -> str:
        return kind("mail", "deadline", message, None)

    assert dead("its deadline (2026-05-04 12:00:00+00:00) passed") == dead(
        "its deadline (2026-06-01 09:30:15.25+00:00) passed"
    )
    assert dead("its deadline passed") != dead("its worker stopped beating")


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("user 42 has no mail", "user # has no mail"),
        ("job 0198c1a2-aaaa-7bbb-8ccc-0123456789ab at 0x7f3a2b", "job # at #"),
        ("no row 'ann@example.org' in \"people\"", "no row '…' in '…'"),
        ("commit deadbeef99 is bad", "commit # is bad"),
        ("a defaced facade", "a defaced facade"),
        ("  spread \n out ", "spread out"),
    ],
)
def test_what_differs_from_job_to_job_becomes_a_mark(text, marks):
    assert normalised(text) == marks


def test_a_failure_inside_a_library_alone_names_the_librarys_frame():
    try:
        json.loads("{")
    except ValueError as error:
        stack = Failure.of(error, ErrorClass.RETRYABLE).stack
    assert stack is not None
    lines = stack.splitlines()
    only = "\n".join(line for line in lines if __file__ not in line)

    assert (
        top_frame(stack)
        == "core/test_fingerprints.py in test_a_failure_inside_a_library_alone_names_the_librarys_frame"
    )
    assert top_frame(only) == "json/decoder.py in raw_decode"


def test_rotas_own_frames_are_not_the_applications():
    import rota._core.outcome as inside

    ours = f'  File "{inside.__file__}", line 1, in decide\n    y()\n'
    stack = '  File "/srv/app/jobs.py", line 3, in work\n    x()\n' + ours

    assert top_frame(stack) == "app/jobs.py in work"


@pytest.mark.parametrize("stack", [None, "", "no frames here"])
def test_a_stack_without_frames_names_none(stack):
    assert top_frame(stack) is None


def test_frames_of_a_windows_path_and_of_a_group_are_read():
    assert top_frame('  File "C:\\app\\jobs.py", line 3, in work') == "app/jobs.py in work"
    assert top_frame('  | File "/app/jobs.py", line 3, in part') == "app/jobs.py in part"
