"""Jobs in PostgreSQL: the default store."""

from rota.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
