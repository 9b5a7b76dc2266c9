"""Where the API may listen: on this machine, or anywhere with somebody at the door."""

from __future__ import annotations

from ipaddress import ip_address

from rota.errors import ConfigError


def is_loopback(address: str | None) -> bool:
    """Whether this is an address, or the name, of the machine itself."""
    if address is None:
        return False
    bare = address.strip("[]").lower()
    if bare == "localhost":
        return True
    try:
        found = ip_address(bare)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def refuse_open_bind(address: str, *, guarded: bool) -> None:
    """`rota dashboard` calls this before it listens: other machines reach it only where `guarded` says who may ask."""
    if guarded or is_loopback(address):
        return
    raise ConfigError(
        f"the web server is to listen on {address!r}, which other machines can reach, and nothing says who may ask. "
        "Listen on 127.0.0.1, give auth=..., or make a token first: `rota token create NAME --role operator`."
    )
