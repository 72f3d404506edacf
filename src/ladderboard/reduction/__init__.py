"""General queries answered through any mechanism.

The paper's Fig. 2 in its corrected form, and the experiment that tells faithful mechanisms.

This room is still empty.
"""

__all__: list[str] = []
