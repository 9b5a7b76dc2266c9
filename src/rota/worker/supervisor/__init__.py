"""The supervisor of `rota worker`: starts child processes that run jobs, watches them, and replaces them.

It runs no code of the user's, so nothing that a job does can stop it. It sees its children through a small block of
shared memory each (`block.py`), and speaks to them through a socket (`leash.py` is their end, `child.py` ours).
"""
