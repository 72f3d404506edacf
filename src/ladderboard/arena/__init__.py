"""Mechanisms against analysts.

``run`` lets every analyst play against every mechanism and returns one row a repetition, the same
rows on one process, on several or on a cluster.
"""

from ladderboard.arena._arena import run
from ladderboard.arena._row import Row

__all__ = ["Row", "run"]
