"""Which names the API answers to. A page of somebody else's that resolves to this machine is not among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rota.errors import ConfigError
from rota.web.problems import Problem, request_id_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL = ("localhost", "127.0.0.1", "[::1]")
ANY = "*"


def allowed_hosts(hosts: Iterable[str] | None, *, guarded: bool) -> tuple[str, ...]:
    """The names that count: what was given, else those of this machine; any where the host application guards."""
    if hosts is None:
        return (ANY,) if guarded else LOCAL
    if isinstance(hosts, str):
        raise ConfigError(f"hosts must be a list of names, not {hosts!r}. Write [{hosts!r}] for one.")
    names = tuple(name.strip().lower() for name in hosts)
    wrong = [name for name in names if not name or "/" in name or "*" in name.removeprefix("*.").strip("*")]
    if wrong or not names:
        raise ConfigError(
            f"hosts {list(names)!r} cannot be used: write names such as 'jobs.example.org', '*.example.org', or '*'."
        )
    return names


def bare(host: str) -> str:
    """A Host header without its port."""
    name = host.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


class Hosts:
    """Refuses requests that name another host (DNS rebinding)."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._answers_to(host_of(scope)):
            problem = Problem(
                421,
                "wrong-host",
                "This server does not answer to that name. Whoever runs it adds the name to `hosts`.",
            )
            await problem.response(request_id_of(scope))(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _answers_to(self, host: str | None) -> bool:
        if ANY in self._hosts:
            return True
        if host is None:
            return False
        name = bare(host)
        return any(
            name == allowed or (allowed.startswith("*.") and name.endswith(allowed[1:]))
            for allowed in self._hosts
        )


def host_of(scope: Scope) -> str | None:
    """The Host header; None when there is none, or more than one."""
    found = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    return found[0] if len(found) == 1 else None
