"""The record and its storage.

Append-only: the commitment made at the start, the chain of entries, and the databases that keep
them.

This room is still empty.
"""

__all__: list[str] = []
