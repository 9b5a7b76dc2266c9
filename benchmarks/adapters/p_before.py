"""Rota as it was at an earlier commit (`--before REF`): what a change has won or lost is seen beside it, in the same run."""

from p_rota import *  # noqa: F403
