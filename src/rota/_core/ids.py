"""Public ids: a job's UUID as Crockford Base32 with hyphens and a check symbol, and back."""

from __future__ import annotations

from uuid import UUID

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CHECKS = ALPHABET + "*~$=U"  # Crockford's 37 check symbols
LENGTH = 26
GROUP = 4
_VALUES = {symbol: value for value, symbol in enumerate(ALPHABET)} | {"O": 0, "I": 1, "L": 1}


def public_id(job_id: UUID) -> str:
    """Write an id for people: `01KA-3F…`, 26 symbols and one that catches a mistyped symbol or a swap."""
    number = job_id.int
    symbols = [ALPHABET[(number >> (5 * place)) & 31] for place in range(LENGTH - 1, -1, -1)]
    text = "".join(symbols) + CHECKS[number % 37]
    return "-".join(text[start : start + GROUP] for start in range(0, len(text), GROUP))


def parse_id(text: str) -> UUID:
    """Read an id in either form: a UUID, or the public form in any case, with or without hyphens."""
    given = text.strip()
    try:
        return UUID(given)
    except ValueError:
        pass
    symbols = given.upper().replace("-", "")
    if len(symbols) != LENGTH + 1:
        raise ValueError(
            f"{text!r} is not a job id: expected a UUID, or {LENGTH} Base32 symbols and a check symbol "
            f"(got {len(symbols)} symbols). `rota jobs list` shows the ids of jobs."
        )
    number = 0
    for symbol in symbols[:-1]:
        if symbol not in _VALUES:
            raise ValueError(
                f"{text!r} is not a job id: {symbol!r} is not a Base32 symbol. Copy the id again."
            )
        number = number * 32 + _VALUES[symbol]
    check = {"O": "0", "I": "1", "L": "1"}.get(symbols[-1], symbols[-1])
    if number >= 2**128 or CHECKS[number % 37] != check:
        raise ValueError(f"{text!r} is not a job id: its check symbol does not fit, so a symbol is mistyped.")
    return UUID(int=number)
