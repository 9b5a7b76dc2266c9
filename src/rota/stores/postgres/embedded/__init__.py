"""The PostgreSQL that comes with the install."""

from rota.stores.postgres.embedded.server import EmbeddedServer

__all__ = ["EmbeddedServer"]
