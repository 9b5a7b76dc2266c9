"""Payloads with what does not belong into them, and payloads that only look so. Python and SQL are held to both."""

from __future__ import annotations

JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
MAIL = "From: ann@example.org\nTo: bob@example.org\nSubject: hello\n\nDear Bob,"

FOUND = [
    ({"password": "hunter2"}, "password looks like a secret"),
    ({"user": {"newPassword": "x"}}, "user.newPassword looks like a secret"),
    ({"rows": [{}, {"api-key": "x"}]}, "rows[1].api-key looks like a secret"),
    ({"credentials": {"user": "ann", "pin": 7}}, "credentials.user looks like a secret"),
    ({"tokens": ["abc"]}, "tokens[0] looks like a secret"),
    ({"password_hash": "$2b$12$abc"}, "password_hash looks like a secret"),
    ({"cvv": 123}, "cvv looks like a personal number"),
    ({"card_number": "1"}, "card_number looks like a personal number"),
    ({"email_body": "Dear Bob"}, "email_body looks like the content of a mail or document"),
    ({"document_content": "x"}, "document_content looks like the content of a mail or document"),
    ({"body": "x" * 200}, "body looks like the content of a mail or document"),
    ({"note": PEM}, "note looks like a private key"),
    ({"note": f"see {JWT}"}, "note looks like a token"),
    ({"header": "Bearer abcdefghij0123456789"}, "header looks like a token"),
    ({"note": "AKIAIOSFODNN7EXAMPLE"}, "note looks like a token"),
    ({"dsn": "postgresql://ann:hunter2@db/shop"}, "dsn looks like an address with its password"),
    ({"note": "paid with 4111 1111 1111 1111 today"}, "note looks like a card number"),
    ({"note": "378282246310005"}, "note looks like a card number"),
    ({"note": MAIL}, "note looks like the content of a mail or document"),
    ({"note": "  <!DOCTYPE html><p>x"}, "note looks like the content of a mail or document"),
    ({"note": "JVBERi0xLjcKJeLjz9MK"}, "note looks like the content of a mail or document"),
    ({"blob": "QUJD" * 500}, "blob looks like the content of a mail or document"),
]
"""Payloads, and what is said of each. SQL is held to the same list."""

LEFT_ALONE = [
    {
        "tenant_id": 7,
        "correlation_id": "550e8400-e29b-41d4-a716-446655440000",
        "idempotency_key": "fetch_456",
    },
    {"connection_id": 456, "external_message_id": "msg_789", "recipient_ids": [1, 2]},
    {
        "max_tokens": 4000,
        "token_count": "12",
        "token_id": "t-1",
        "secret_name": "db/prod",
        "password_reset": True,
    },
    {"password": None, "token": "", "secret": "  ", "api_key": False},
    {"body": "hello", "content": "short", "html": "<b>x</b>", "file": "a.pdf"},
    {"id": "01989a4e-7c1e-7123-8123-123412341234", "at": "2026-03-01T09:30:00Z", "ms": "1767225600000"},
    {"note": "4111 1111 1111 1112", "order": "4111-1111-1111-1111-x", "number": 4111111111111111},
    {"url": "https://example.org/a:b@c", "mail": "ann@example.org", "subject": "From: here to there"},
    {"text": "Subject: a\nthe rest is a story", "words": "basic training", "hash": "a" * 64},
]
