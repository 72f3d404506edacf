"""Tools people already use, each in a small file of its own, none importing another."""

__all__: list[str] = []
