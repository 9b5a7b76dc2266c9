"""Access tokens as rows: made, listed, revoked, and when they were last used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rota._core.actions import Audit
from rota._core.failure import storable
from rota._core.token import USE_NOTED_EVERY, Role, Token
from rota.stores.postgres.operators import audited
from rota.stores.postgres.sqlfiles import statement

if TYPE_CHECKING:
    from rota.stores.postgres.connections import Connection, Connections


class Tokens:
    """The verbs about tokens on one event loop's connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def create(self, token: Token, audit: Audit) -> None:
        parameters = {
            "id": token.id,
            "name": storable(token.name),
            "role": token.role.value,
            "digest": token.digest,
            "tenant": token.tenant,
            "created_by": storable(token.created_by),
            "expires_at": token.expires_at,
        }
        await self._told("token_create", parameters, audit)

    async def listed(self, token_id: str | None) -> list[Token]:
        async def call(connection: Connection, _: bool) -> list[Token]:
            rows = await (await connection.execute(statement("tokens"), {"id": token_id})).fetchall()
            return [_token(row) for row in rows]

        return await self._connections.run(call)

    async def revoke(self, token_id: str, by: str, audit: Audit) -> Token | None:
        row, repeated = await self._told("token_revoke", {"id": token_id, "by": storable(by)}, audit)
        if row is None and repeated:  # it may be done already, and the answer was lost
            return next(
                (done for done in await self.listed(token_id) if done.revoked_by == storable(by)), None
            )
        return None if row is None else _token(row)

    async def note_used(self, token_id: str) -> None:
        async def call(connection: Connection, _: bool) -> None:
            asked = {"id": token_id, "every": USE_NOTED_EVERY, "now": self._connections.now()}
            await connection.execute(statement("token_used"), asked)

        await self._connections.run(call, within=0.0)  # not worth waiting for, on a replica least of all

    async def _told(
        self, verb: str, parameters: dict[str, Any], audit: Audit
    ) -> tuple[tuple[Any, ...] | None, bool]:
        """One statement and, if it wrote something, its audit row with it; its row, and whether it was repeated."""

        async def call(connection: Connection, repeated: bool) -> tuple[tuple[Any, ...] | None, bool]:
            now = {"now": self._connections.now()}
            async with connection.transaction():
                row = await (await connection.execute(statement(verb), parameters | now)).fetchone()
                if row is not None:
                    await connection.execute(statement("audit"), audited(audit) | now)
                return row, repeated

        return await self._connections.run(call)


def _token(row: tuple[Any, ...]) -> Token:
    token = Token._make(row)
    return token._replace(role=Role(token.role))
