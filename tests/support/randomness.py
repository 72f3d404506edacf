"""Randomness that repeats: for tests that draw what to do next."""

import random


def seeded_random(seed: int) -> random.Random:
    """Return a generator that draws the same for the same seed; never for secrets."""
    return random.Random(seed)  # noqa: S311 - no secret
