"""Verbs on the command line, no logic.

``main`` is the program ``ladderboard``, and ``python -m ladderboard`` is the same. What cannot be
done is one line on stderr and exit code 2.
"""

from ladderboard.cli._main import main

__all__ = ["main"]
