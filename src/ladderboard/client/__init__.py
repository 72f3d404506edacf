"""The same verbs from Python, over HTTP.

This room is still empty.
"""

__all__: list[str] = []
