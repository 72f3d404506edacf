"""The leaderboard over HTTP: the API and its pages.

This room is still empty.
"""

__all__: list[str] = []
