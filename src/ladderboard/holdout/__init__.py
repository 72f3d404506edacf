"""The guard.

Labels, loss, mechanism and ledger in one file: ask as often as the budget allows.

This room is still empty.
"""

__all__: list[str] = []
