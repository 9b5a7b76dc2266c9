"""Chaos: hurt real processes and servers, then check what three independent records say of every job.

The producer's journal and the handlers' effect log live outside the system under test; its own tables are
the third record. `checker.py` compares the three. Long runs and seeds: `make chaos`.
"""
