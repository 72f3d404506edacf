"""Ladderboard: leaderboards and holdouts that resist overfitting.

>>> import ladderboard as lb
>>> mechanism = lb.ShakyLadder.calibrated(n=10_000, questions=1_000)
>>> session = mechanism.start(n=10_000, tape=lb.Tape(seed=7))
>>> session.ask(risk=0.31).value
0.31

Names are imported from their packages on first use, so ``import ladderboard`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ladderboard._version import __version__

if TYPE_CHECKING:
    from ladderboard import (
        analysts,
        arena,
        bounds,
        errors,
        files,
        holdout,
        ledger,
        losses,
        mechanisms,
        reduction,
        tape,
        testing,
    )
    from ladderboard.analysts import Analyst
    from ladderboard.arena import majority_attack, majority_attack_moments
    from ladderboard.errors import LadderboardError
    from ladderboard.holdout import Gate, Holdout, Judge, Reply, Verdict
    from ladderboard.losses import Loss, Metric, loss, metric
    from ladderboard.mechanisms import (
        BootstrapLadder,
        Exact,
        GrowingLadder,
        Ladder,
        Mechanism,
        Noisy,
        OneBit,
        ParameterFreeLadder,
        Release,
        Releases,
        Rounded,
        Session,
        ShakyLadder,
        Thresholdout,
        leaderboard_error,
        mechanism,
    )
    from ladderboard.reduction import GeneralEstimator, is_faithful
    from ladderboard.tape import NumpyTape, Tape

__all__ = [
    "Analyst",
    "BootstrapLadder",
    "Exact",
    "Gate",
    "GeneralEstimator",
    "GrowingLadder",
    "Holdout",
    "Judge",
    "Ladder",
    "LadderboardError",
    "Loss",
    "Mechanism",
    "Metric",
    "Noisy",
    "NumpyTape",
    "OneBit",
    "ParameterFreeLadder",
    "Release",
    "Releases",
    "Reply",
    "Rounded",
    "Session",
    "ShakyLadder",
    "Tape",
    "Thresholdout",
    "Verdict",
    "__version__",
    "analysts",
    "arena",
    "bounds",
    "errors",
    "files",
    "holdout",
    "is_faithful",
    "leaderboard_error",
    "ledger",
    "loss",
    "losses",
    "majority_attack",
    "majority_attack_moments",
    "mechanism",
    "mechanisms",
    "metric",
    "reduction",
    "tape",
    "testing",
]

_PACKAGES = (
    "analysts",
    "arena",
    "bounds",
    "errors",
    "files",
    "holdout",
    "ledger",
    "losses",
    "mechanisms",
    "reduction",
    "tape",
    "testing",
)
# The package of each public name; the others are in mechanisms.
_PACKAGE_OF = {
    "Analyst": "analysts",
    "LadderboardError": "errors",
    **dict.fromkeys(("majority_attack", "majority_attack_moments"), "arena"),
    **dict.fromkeys(("Gate", "Holdout", "Judge", "Reply", "Verdict"), "holdout"),
    **dict.fromkeys(("Loss", "Metric", "loss", "metric"), "losses"),
    **dict.fromkeys(("GeneralEstimator", "is_faithful"), "reduction"),
    **dict.fromkeys(("NumpyTape", "Tape"), "tape"),
}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        value: Any = import_module(f"ladderboard.{name}")
    elif name in __all__:
        value = getattr(import_module(f"ladderboard.{_PACKAGE_OF.get(name, 'mechanisms')}"), name)
    else:
        raise AttributeError(f"module 'ladderboard' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
