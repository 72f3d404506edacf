"""Who asks.

Whatever chooses the next model: attacks that climb by peeking, and honest analysts as the control
group.

This room is still empty.
"""

__all__: list[str] = []
