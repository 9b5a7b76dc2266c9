"""Rota beside other tools. Each module needs its extra, and is imported only by those who ask for it."""
