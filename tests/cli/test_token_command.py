"""`rota token`: made, shown once, listed, revoked."""

from __future__ import annotations

import json

from rota._core.token import FORM
from rota.admin import Admin
from rota.cli import exits


def checked(jobs, text: str):
    return jobs.do(lambda store: Admin(store, actor="face").check_token(text))


def test_a_token_goes_to_stdout_alone_and_everything_else_is_said_beside_it(rota, jobs):
    said = rota(
        "token", "create", "ann, on call", "--role", "operator", "--tenant", "acme", "--expires", "12h"
    )

    [text] = said.lines
    assert FORM.fullmatch(text)
    assert "is operator of tenant acme, until" in said.err
    assert "shown only now" in said.err
    assert text not in said.err
    assert checked(jobs, text).role == "operator"


def test_the_list_never_shows_a_token(rota, jobs):
    text = rota("token", "create", "grafana", "--expires", "never").lines[0]
    said = rota("token", "list")
    [record] = json.loads(rota("token", "list", "--json").out)

    [line] = said.lines
    token_id, name, role, tenant, state, by, *_ = line.split("\t")
    assert (name, role, tenant, state, by) == ("grafana", "viewer", "", "active", "ann@office")
    assert (record["id"], record["expires_at"]) == (token_id, None)
    assert "digest" not in record
    assert text.split("_")[2] not in said.out


def test_a_revoked_token_is_gone_from_the_list_and_in_the_audit(rota, jobs):
    made = json.loads(rota("token", "create", "grafana", "--json").out)
    said = rota("token", "revoke", made["id"], "--reason", "laptop lost")

    assert said.code == exits.DONE
    assert f"Token {made['id']} (grafana) counts no more. It was never used." in said.err
    assert checked(jobs, made["token"]) is None
    assert rota("token", "list").code == exits.NOTHING
    assert rota("token", "list", "--all").lines[0].split("\t")[4] == "revoked"
    rows = [line.split("\t") for line in rota("audit", "list", "--about", f"token:{made['id']}").lines]
    assert [(row[1], row[2], row[6]) for row in rows] == [
        ("ann@office", "token_revoked", "laptop lost"),
        ("ann@office", "token_created", ""),
    ]


def test_what_is_not_there_cannot_be_revoked(rota, jobs):
    said = rota("token", "revoke", "nobody")

    assert said.code == exits.NOTHING
    assert "no token has the id 'nobody'" in said.err
    assert rota("token", "list").err.startswith("There are no tokens. `rota token create NAME` makes one.")


def test_a_length_that_is_none_is_refused(rota, jobs):
    said = rota("token", "create", "x", "--expires", "soon")

    assert said.code == exits.USAGE
    assert "'soon' is not understood" in said.err
