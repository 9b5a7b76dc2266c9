"""The memory store: the reference that every other store is compared with, and a test double for users."""

from rota.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
