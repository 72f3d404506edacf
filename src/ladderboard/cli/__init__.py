"""Verbs, no logic.

This room is still empty.
"""

__all__: list[str] = []
