"""The base class of all mechanisms: a frozen description with a pure step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ladderboard.errors import InvalidState
from ladderboard.mechanisms._session import Session
from ladderboard.mechanisms._types import (
    DAMAGED_STATE,
    Observation,
    Observations,
    Setup,
    Step,
    StepMany,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ladderboard.tape import Draws, DrawsMany, Law, Tape


@dataclass(frozen=True)
class Mechanism(ABC):
    """The rule from risks to releases.

    A subclass is a frozen dataclass of settings with three pure parts: ``laws`` says which noise
    is drawn for every question (always all of it, whatever happens), ``begin`` gives the state
    before the first question, ``advance`` turns a state, a question and its draws into the next
    state and what is said. No clock, no disk, no randomness of its own. A state is a NamedTuple of
    JSON-able fields, or the subclass overrides ``dump_state`` and ``load_state``.
    """

    name: ClassVar[str]
    needs: ClassVar[Literal["risk", "losses"]] = "risk"
    needs_training: ClassVar[bool] = False
    zero_one_only: ClassVar[bool] = False  # what it can say is a finite list for that loss only
    state_type: ClassVar[Any]

    @property
    def laws(self) -> tuple[Law, ...]:
        """The law of each slot drawn for every question."""
        return ()

    @abstractmethod
    def begin(self, setup: Setup, draws: Draws) -> Any:
        """Return the state before the first question; ``draws`` are those of question 0."""

    @abstractmethod
    def advance(self, setup: Setup, state: Any, observation: Observation, draws: Draws) -> Step:
        """Return the next state and what is said; touch nothing."""

    def advance_many(
        self, setup: Setup, state: Any, observations: Observations, draws: DrawsMany
    ) -> StepMany:
        """Step through many risks at once; the same as one by one, bit for bit."""
        count = len(observations.risks)
        value, score = np.full(count, np.nan), np.full(count, np.nan)
        improved = np.zeros(count, dtype=np.bool_)
        risks = observations.risks.tolist()
        training = (
            [None] * count if observations.training is None else observations.training.tolist()
        )
        rows = list(zip(*(column.tolist() for column in draws), strict=True)) or [()] * count
        for at in range(count):
            done = self.advance(setup, state, Observation(risks[at], None, training[at]), rows[at])
            state = done.state
            if done.value is not None:
                value[at] = done.value
            if done.score is not None:
                score[at] = done.score
            improved[at] = done.improved
        return StepMany(state, value, score, improved)

    def value(self, state: Any) -> float | None:
        """Return the estimate that stands in this state; None if nothing was said yet."""
        best: float | None = state.best
        return best

    def close(self, state: Any) -> float | None:
        """Return the estimate to be told when the session is closed."""
        return self.value(state)

    def check(self, setup: Setup) -> None:  # noqa: B027 - most take any setup
        """Refuse a setup this mechanism cannot work with."""

    def dump_state(self, state: Any) -> dict[str, Any]:
        """Write a state as JSON-able fields."""
        written: dict[str, Any] = state._asdict()
        return written

    def load_state(self, written: Mapping[str, Any], setup: Setup, fresh: Any) -> Any:
        """Read what ``dump_state`` wrote; ``fresh`` is the state before the first question."""
        state = self.state_type(**written)
        for value, like in zip(state, fresh, strict=True):
            check_state_field(value, like)
        return state

    def describe(self) -> dict[str, Any]:
        """Return the settings that decide releases, JSON-able: the mechanism's identity."""
        settings = {
            field.name: getattr(self, field.name) for field in fields(self) if field.compare
        }
        return {"mechanism": self.name, **settings}

    def start(
        self,
        n: int,
        tape: Tape | None = None,
        risk_range: tuple[float, float] = (0, 1),
        ladder: int = 0,
    ) -> Session:
        """Start a session.

        Parameters
        ----------
        n
            Number of examples in the holdout.
        tape
            Where noise comes from; without one, a fresh tape with a key from the operating system.
        risk_range
            The interval in which risks lie.
        ladder
            Which ladder of the tape this is; sessions on one tape need ladders of their own.
        """
        return Session.start(self, n=n, tape=tape, risk_range=risk_range, ladder=ladder)

    def resume(self, state: Mapping[str, Any], tape: Tape | None = None) -> Session:
        """Go on from ``session.state``, with the tape it was started on: the same future."""
        return Session.resume(self, state, tape=tape)


def check_state_field(value: Any, like: Any) -> None:
    """Refuse a field of a saved state that is not a finite number of the kind it starts as."""
    if value is None and like is None:
        return
    kind = float if like is None else type(like)
    if type(value) is not kind or not math.isfinite(value):
        raise InvalidState(DAMAGED_STATE)
