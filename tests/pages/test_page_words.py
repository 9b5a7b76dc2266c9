"""What pages make of stored words: commands told apart, the audit as people say it, addresses to follow."""

from __future__ import annotations

import pytest

from rota.web.pages.words import became, commands, did, linked


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Start one: rota worker APP", "Start one: <code>rota worker APP</code>"),
        ("Or `rota tasks release a`.", "Or <code>rota tasks release a</code>."),
        ("See: rota stats; more: rota top", "See: <code>rota stats</code>; more: <code>rota top</code>"),
        ("rota queues", "<code>rota queues</code>"),
        ("the rota command <b>", "the rota command &lt;b&gt;"),
        ("Do it: rota tasks release '<i>'", "Do it: <code>rota tasks release &#39;&lt;i&gt;&#39;</code>"),
    ],
)
def test_what_can_be_typed_is_told_apart_from_its_sentence(said, shown):
    assert str(commands(said)) == shown


def test_the_audit_speaks_as_people_do():
    assert did("job_dlq_reprocess_requested") == "reprocess requested"
    assert did("cancel") == "cancel"
    assert became("pending_review") == "pending review"
    assert became("7776000 s") == "90d"
    assert (
        became("reprocess 8 dead letters (task=render_invoice)")
        == "reprocess 8 dead letters (task=render_invoice)"
    )
    assert became(None) == ""


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("known", "known"),
        (
            "see https://a.example/12?b=1&c.",
            'see <a href="https://a.example/12?b=1&amp;c" rel="noopener noreferrer">https://a.example/12?b=1&amp;c</a>.',
        ),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
    ],
)
def test_an_address_in_a_reason_is_a_link_and_nothing_else_is(said, shown):
    assert str(linked(said)) == shown


def test_an_address_cannot_leave_its_attribute():
    hostile = """https://a.example/"onmouseover='x'<script>"""

    assert str(linked(hostile)).startswith('<a href="https://a.example/" rel=')
    assert "<script" not in linked(hostile)


def test_no_reason_is_no_link():
    assert not linked(None)
