"""Mechanisms for tests of non-interference: some ignore the labels, one leaks them."""

from dataclasses import dataclass
from typing import ClassVar

import ladderboard as lb
from ladderboard.mechanisms import Observation

NOISE = {"step": 0.01, "compare_noise": 0.1, "release_noise": 0.1, "grid": None}


@dataclass(frozen=True)
class BlindLadder(lb.ShakyLadder):
    """Ignores the labels: it sees the same risk at every question."""

    name: ClassVar[str] = "blind"

    def advance(self, setup, state, observation, draws):
        return super().advance(setup, state, self.visible(observation), draws)

    def visible(self, observation):
        """Return what the mechanism gets to see."""
        return Observation(0.4, None, None)


@dataclass(frozen=True)
class BlindLadderByExample(BlindLadder):
    """Ignores the labels, and is given the loss of every example."""

    name: ClassVar[str] = "blind_by_example"
    needs: ClassVar[str] = "losses"


@dataclass(frozen=True)
class LeakyLadder(BlindLadder):
    """Sees a trace of the true risk, which the tests must detect."""

    name: ClassVar[str] = "leaky"

    def visible(self, observation):
        return Observation(0.4 + observation.risk / 1e4, None, None)
