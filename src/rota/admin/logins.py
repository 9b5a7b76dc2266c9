"""Sessions of people with a browser, as all servers with one secret know them: that one was ended."""

from __future__ import annotations

from rota._core.actions import Audit
from rota.admin.reads import Reads


class Logins(Reads):
    """A session is a signed cookie, which every server with the secret believes. Who logs out says so in the audit.

    There it stays as long as anybody could come with a copy, and nobody takes it back.
    """

    async def log_out(self, login: str) -> None:
        """Let this session count no more, on any server. It is noted once, however often a copy is shown."""
        if not await self.has_logged_out(login):
            await self.store.note(Audit(self.actor, "logged_out", None, about=_about(login)))

    async def has_logged_out(self, login: str) -> bool:
        """Whether this session was ended, here or elsewhere."""
        return bool(await self.store.audit(about=_about(login), limit=1))


def _about(login: str) -> str:
    return f"login:{login}"
