"""The paper's theorem with its constants, and the privacy by sparse-vector accounting."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from ladderboard._formatting import format_count
from ladderboard.mechanisms import PaperSettings, paper_settings


@dataclass(frozen=True)
class Privacy:
    """Privacy parameters and their source."""

    epsilon: float
    delta: float
    source: str

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.4g}, delta {self.delta:.4g} ({self.source})"


@dataclass(frozen=True)
class PaperBound:
    """The bound 18 e + lambda + 2 L on the leaderboard error, with its parts.

    Parameters
    ----------
    settings
        Eq. (2).
    transfer
        18 e, with e = epsilon sqrt(B) and B = 4 / lambda: the transfer theorem's part.
    noise
        L = log(4k/beta) sigma, which all noise stays below except with probability beta.
    conditions
        The conditions of the transfer theorem that fail, in words.
    claimed
        The privacy the paper's lemma claims.
    accounted
        The privacy that sparse-vector accounting gives for an algorithm stopped after ``epochs``
        updates.
    per_epoch, epochs
        The privacy cost of one update, 4 / (n sigma), and the largest number: floor(4 / lambda).
    """

    settings: PaperSettings
    transfer: float
    noise: float
    conditions: tuple[str, ...]
    claimed: Privacy
    accounted: Privacy
    per_epoch: float
    epochs: int

    @property
    def bound(self) -> float:
        """18 e + lambda + 2 L, whether or not the conditions hold."""
        return self.transfer + self.settings.step + 2 * self.noise

    @property
    def accounted_bound(self) -> float:
        """The bound with the accounted privacy in place of the claimed one."""
        return 18 * self.accounted.epsilon + self.settings.step + 2 * self.noise

    @property
    def holds(self) -> bool:
        """Whether every condition of the transfer theorem holds."""
        return not self.conditions

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing: it is at least 1, or a condition fails."""
        return self.bound >= 1 or not self.holds

    def describe(self) -> dict[str, Any]:
        """Return everything, JSON-able."""
        return {
            **asdict(self),
            "conditions": list(self.conditions),
            "bound": self.bound,
            "accounted_bound": self.accounted_bound,
            "holds": self.holds,
            "vacuous": self.vacuous,
        }

    def __str__(self) -> str:
        settings = self.settings
        verdict = "vacuous" if self.vacuous else "holds"
        size = f"n={settings.n}, questions={settings.questions}, beta={settings.beta:g}"
        parts = f"{self.transfer:.4g} + {settings.step:.4g} + {2 * self.noise:.4g}"
        lines = [
            f"the paper's bound for {size}: {self.bound:.4g} ({verdict})",
            f"  18 e + lambda + 2 L = {parts}",
            *(f"  condition fails: {sentence}" for sentence in self.conditions),
            f"  privacy claimed:   {self.claimed}",
            f"  privacy accounted: {self.accounted}",
            f"  with the accounted privacy the same sum is {self.accounted_bound:.4g}",
        ]
        return "\n".join(lines)


def paper(n: int, questions: int, beta: float = 0.05) -> PaperBound:
    """Return the paper's bound on the leaderboard error at its own settings.

    The paper proves its theorem up to constants, in the bound and in beta. These are the constants
    of its proof; the privacy lemma is used as printed.

    >>> print(f"{paper(n=1_000_000, questions=100_000).bound:.2g}")
    0.54
    """
    settings = paper_settings(n, questions, beta)
    e = settings.transfer_epsilon
    per_epoch = 4 / (settings.n * settings.noise_scale)
    epochs = max(1, math.floor(settings.updates))
    return PaperBound(
        settings=settings,
        transfer=18 * e,
        noise=settings.step / 4,  # log(4k/beta) sigma, by Eq. (2)
        conditions=tuple(settings.failed_conditions()),
        claimed=Privacy(
            e, settings.delta, "the lemma, epsilon sqrt(B), its O(delta) read as delta"
        ),
        accounted=_compose_epochs(per_epoch, epochs, settings.delta),
        per_epoch=per_epoch,
        epochs=epochs,
    )


def _compose_epochs(epsilon: float, epochs: int, delta: float) -> Privacy:
    """Compose the sparse vector's epochs: threshold 1, comparisons 2, release 1 over n sigma."""
    basic = epochs * epsilon
    # Dwork, Roth (2014), Theorem 3.20; the second term is infinite if epsilon is useless.
    grown = math.expm1(epsilon) if epsilon < 700 else math.inf
    advanced = math.sqrt(2 * epochs * math.log(1 / delta)) * epsilon + epochs * epsilon * grown
    capped = f"stopped after {format_count(epochs, 'update')}"
    if basic <= advanced:
        return Privacy(basic, 0.0, f"sparse vector, basic composition, {capped}")
    return Privacy(advanced, delta, f"sparse vector, advanced composition, {capped}")
