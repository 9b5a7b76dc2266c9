"""The one service behind every face: reads and actions with their rules and their audit."""

from rota.admin.service import Admin

__all__ = ["Admin"]
