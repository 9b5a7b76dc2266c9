"""Rota and its peers under the same faults: kills, freezes, outages, poison. `run.py` runs it; see README.md there."""
