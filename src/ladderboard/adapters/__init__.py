"""Tools people already use, each in a small file of its own, none importing another.

This room is still empty.
"""

__all__: list[str] = []
