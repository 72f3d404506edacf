"""What can be promised.

The paper's theorem with its constants, certificates by counting transcripts, and the planner that
inverts them.

This room is still empty.
"""

__all__: list[str] = []
