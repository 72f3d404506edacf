"""Recompute a bundle from nothing but itself.

This room is still empty.
"""

__all__: list[str] = []
