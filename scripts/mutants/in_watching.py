"""Mutants of access tokens, and of what those who watch are told."""

from __future__ import annotations

from mutant import Mutant

SQL = "stores/postgres/sql"
HAPPENINGS = "conformance/test_happenings.py"

MUTANTS = (
    Mutant(
        name="an expired or revoked token still counts",
        file="_core/token.py",
        old='return is_text_of(text, token) and token is not None and token.state(now) == "active"',
        new="return is_text_of(text, token) and token is not None",
        where="core/test_token.py",
        by="test_only_the_right_text_of_a_token_that_counts_is_accepted",
    ),
    Mutant(
        name="a token is known by its id alone",
        file="_core/token.py",
        old="return right and token is not None",
        new="return token is not None",
        where="core/test_token.py",
        by="test_only_the_right_text_of_a_token_that_counts_is_accepted",
    ),
    Mutant(
        name="a token is revoked twice",
        file=f"{SQL}/token_revoke.sql",
        old="WHERE id = %(id)s AND revoked_at IS NULL",
        new="WHERE id = %(id)s",
        where="conformance/test_tokens_stored.py",
        by="test_a_revoked_token_stays_known_and_is_revoked_once[postgres]",
    ),
    Mutant(
        name="past midnight the day before is forgotten",
        file="stores/postgres/watching.py",
        old="for _, day, blocks in sizes]",
        new="for _, day, blocks in sizes[:1]]",
        where=HAPPENINGS,
        by="test_midnight_loses_nothing[postgres]",
    ),
)
