"""What people see of payloads, errors and logs holds no secrets, and is otherwise as it was."""

from __future__ import annotations

import json

import pytest

from build import a_stored_job
from rota._core.failure import ErrorClass, Failure
from rota._core.redaction import for_people, redacted, redacted_text

JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"


def test_values_are_hidden_by_name_and_by_looks_and_the_rest_stays():
    payload = {
        "to": "ann@example.org",
        "password": "hunter2",
        "login": {"accessToken": "abc", "user": "ann", "tries": 3},
        "note": "card 4111 1111 1111 1111, thanks",
        "email_body": "Dear Bob",
        "rows": [{"secret": None}, {"secret": "x"}],
        "cvv": 123,
    }

    assert redacted(payload) == {
        "to": "ann@example.org",
        "password": "***",
        "login": {"accessToken": "***", "user": "ann", "tries": 3},
        "note": "card ***, thanks",
        "email_body": "*** (8 characters)",
        "rows": [{"secret": None}, {"secret": "***"}],
        "cvv": "***",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("connect postgresql://ann:hunter2@db/shop failed", "connect postgresql://ann:***@db/shop failed"),
        ("login(user='ann', password='hunter2')", "login(user='ann', password=***)"),
        ("GET /x?token=abc&page=2", "GET /x?token=***&page=2"),
        ('{"api_key": "abc", "n": 1}', '{"api_key": \'***\', "n": 1}'),
        ("{'client_secret': 'it\\'s', 'n': 1}", "{'client_secret': '***', 'n': 1}"),
        (f"bad token {JWT}!", "bad token ***!"),
        ("Authorization: Bearer abcdefghij0123456789", "Authorization: ***"),
        ("x -----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY----- y", "x *** y"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "***"),
        ("invalid token: it has expired", "invalid token: it has expired"),
        ("order 4111 1111 1111 1112 not found", "order 4111 1111 1111 1112 not found"),
        ("KeyError: 'account'", "KeyError: 'account'"),
    ],
)
def test_texts_lose_their_secrets_and_stay_readable(text, shown):
    assert redacted_text(text) == shown


def test_a_failure_is_recorded_without_the_secrets_that_its_error_quotes():
    try:
        raise ValueError("login with password='hunter2' refused")
    except ValueError as error:
        failure = Failure.of(error, ErrorClass.RETRYABLE)

    assert failure.message == "login with password=*** refused"
    assert failure.stack is not None
    assert "hunter2" not in failure.stack
    assert "hunter2" not in Failure.because(ErrorClass.LOST, "token=hunter2").message


def test_a_job_for_people_hides_payload_result_and_error_and_one_without_secrets_is_the_same():
    job = a_stored_job(
        payload_json='{"token": "abc", "n": 1}', result_json='{"jwt": "x"}', error_message="pwd=abc"
    )
    shown = for_people(job)

    assert json.loads(shown.payload_json) == {"token": "***", "n": 1}
    assert (shown.result, shown.error_message) == ({"jwt": "***"}, "pwd=***")
    plain = a_stored_job(payload_json='{ "n" : 1.0 }')
    assert for_people(plain) == plain
