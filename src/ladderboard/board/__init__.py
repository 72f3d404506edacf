"""The organiser's rules.

Teams, phases, limits, finals and standings; no HTTP.

This room is still empty.
"""

__all__: list[str] = []
