"""Prediction files in, itemised refusals out.

Reads what people really send, joins it by id, and says in words what is wrong with the rest.

This room is still empty.
"""

__all__: list[str] = []
