"""A scorer for scikit-learn's searches: one question for each candidate."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ladderboard import _settings
from ladderboard.adapters import import_library
from ladderboard.errors import BudgetSpent, InvalidSetting

if TYPE_CHECKING:
    from ladderboard.holdout import Guard, Reply

Response = Literal["predict", "predict_proba"] | Callable[[Any, Any], Any]
_RESPONSES = ("predict", "predict_proba")
_LONGEST = 200
_WORST = -1.0
# What is noted is the name of a reason: others may be able to write in the folder.
_REASONS = {
    "fold": "A guard is asked once about a candidate, not once for each fold; this scorer was "
    "called for a second fold, or for the training rows. Give the search one split, as in "
    "cv=[(np.arange(len(X)), [0])], and leave out return_train_score; or search on a score of "
    "your own and call judge_search.",
    "candidate": "A guard is asked once about a candidate; this scorer was called again for the "
    "same parameters, and the model predicted otherwise. Give the search one split, as in "
    "cv=[(np.arange(len(X)), [0])], and the estimator a random_state. Parameters that cannot be "
    "pickled, such as functions of a notebook, are the same where their code is.",
    "unknown": "A guard is asked once about a candidate, and of this one it cannot be known: the "
    "rows of the search, or the predictions, cannot be pickled. Give arrays or frames.",
}
_UNKNOWN_CLAIM = (
    "The scorer's folder holds a note that is not a scorer's. Give a folder that only you use."
)


class GuardScorer:
    """A scorer, for ``scoring=``, that asks the guard about a candidate: once, not once a fold.

    The score is minus what was released for a model that improved, and -1 for every other one, so
    the best score is that of the last that improved, whoever was asked first. Use it where the
    candidates are known beforehand; a search that goes by it has nothing to go by. A second fold is
    refused, and so is everything after it, in all processes. Past the budget every candidate has
    -1, and a warning says so once.

    Parameters
    ----------
    guard
        What is asked.
    X_holdout
        The holdout's inputs, in the guard's order.
    response
        ``"predict"``, ``"predict_proba"``, or a function of the model and ``X_holdout``.
    folder
        Where the processes of a search note what they asked; a temporary one if not given. On
        several machines, one that they share.
    """

    def __init__(
        self,
        guard: Guard,
        X_holdout: Any,  # noqa: N803 - as scikit-learn writes it
        *,
        response: Response = "predict",
        folder: Path | str | None = None,
    ) -> None:
        import_library("sklearn", extra="sklearn")
        response_function(response)
        if hasattr(guard, "check_ladder"):  # refused now, and not when a model was trained
            guard.check_ladder()
        self._guard, self._inputs, self._response = guard, X_holdout, response
        self._claims = SharedClaims(folder)

    def __call__(
        self,
        estimator: Any,
        X: Any,  # noqa: N803
        y: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Score a fitted candidate; of ``X`` only counts that it is always the same.

        ``y`` and weights of the search's rows say nothing about the holdout's, and are not used.
        """
        self._raise_if_refused()
        self._claim("fold", X)
        predictions = response_function(self._response)(estimator, self._inputs)
        self._claim("candidate", predictions, f"-{_candidate_key(estimator)}")
        try:
            return _score_of_reply(self._guard.ask(predictions))
        except BudgetSpent as error:
            if self._claims.claim("spent", secrets.token_hex()):
                warnings.warn(f"{error} Candidates from here on score -1.", stacklevel=2)
            return _WORST

    @property
    def spent(self) -> bool:
        """Whether the budget was found to be spent."""
        return self._claims.read("spent") is not None

    def winner(self, results: Any) -> int:
        """Return the place in ``cv_results_`` of the last candidate that improved.

        For ``refit=scorer.winner``: where several folds were refused, or no candidate improved, the
        search then ends with the reason, and not with a model that is as good as any.
        """
        self._raise_if_refused()
        scores = np.asarray(results["mean_test_score"], dtype=float)
        found = np.where(np.isfinite(scores), scores, _WORST)
        if not np.any(found > _WORST):
            raise InvalidSetting(
                f"None of the {len(found)} candidates improved on what the guard had seen before, "
                "so none has won. With refit=False the search keeps its cv_results_."
            )
        return int(found.argmax())

    def _raise_if_refused(self) -> None:
        refused = self._claims.read("refused")
        if refused is not None:
            raise InvalidSetting(_REASONS.get(refused, _UNKNOWN_CLAIM))

    def _claim(self, what: str, of: Any, which: str = "") -> None:
        text = _joblib_hash(of)
        if text is None or not self._claims.claim(f"{what}{which}", text):
            reason = "unknown" if text is None else what
            self._claims.claim("refused", reason)
            raise InvalidSetting(_REASONS[reason])


def _score_of_reply(reply: Reply) -> float:
    if not reply.improved:
        return _WORST
    if reply.loss is None:  # OneBit keeps it back, but what improved later is better
        return -1.0 / (1 + reply.question)
    return -reply.loss


def _candidate_key(estimator: Any) -> str:
    """Return what a candidate goes by: its parameters, without what it learnt."""
    unfitted, params = None, {}
    # A model of somebody's own may have no parameters; then it goes by its class.
    with suppress(Exception):
        unfitted = import_library("sklearn.base", extra="sklearn").clone(estimator)
        params = unfitted.get_params()
    name = _joblib_hash(unfitted)
    if name is None:
        alike = {
            each: _joblib_hash(value) or _code_fingerprint(value) for each, value in params.items()
        }
        name = str(_joblib_hash((_code_fingerprint(estimator), alike)))
    return name


def _code_fingerprint(thing: Any) -> tuple[str, ...]:
    """Return what of a thing that cannot be written down is the same in all processes."""
    code = getattr(thing, "__code__", None)
    values = [each for each in getattr(code, "co_consts", ()) if not isinstance(each, CodeType)]
    name = getattr(thing, "__qualname__", "")
    return (
        type(thing).__qualname__,
        name,
        str(getattr(code, "co_code", "")),
        str(_joblib_hash(values)),
    )


def _joblib_hash(thing: Any) -> str | None:
    """Return a hash that is the same in all processes; None of what cannot be written down."""
    if thing is None:
        return None
    if hasattr(thing, "to_numpy"):  # a frame's hash may tell how it was put together
        thing = thing.to_numpy()
    if isinstance(thing, np.ndarray):
        thing = np.array(thing)  # also if it lay in a file that workers share
    try:
        return str(import_library("joblib", extra="sklearn").hash(thing))
    except Exception:  # noqa: BLE001 - a lambda among the parameters, or a class of a notebook
        return None


def response_function(response: Any) -> Callable[[Any, Any], Any]:
    """Return the function of a model and the holdout's inputs that is meant."""
    if callable(response):
        return response
    if response not in _RESPONSES:
        raise InvalidSetting(
            'response must be "predict", "predict_proba" or a function of the model and the '
            f"holdout's inputs; got {_settings.safe_repr(response)}."
        )
    return lambda model, inputs: getattr(model, response)(inputs)


class SharedClaims:
    """Short texts under names, in a folder: who writes one first has written it for everybody.

    Parameters
    ----------
    folder
        Where; a temporary one if not given, which goes when this object does. Copies of it, in
        other processes too, look at the same folder.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        if folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="ladderboard-"))
            weakref.finalize(self, _remove_folder, self._folder, os.getpid())
        else:
            self._folder = Path(folder).absolute()
            self._folder.mkdir(parents=True, exist_ok=True)

    def claim(self, name: str, text: str) -> bool:
        """Write a note if there is none; return whether it says this text."""
        handle, draft = tempfile.mkstemp(dir=self._folder, prefix="draft-")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            # A link appears with all of its text, and fails where there is one already.
            os.link(draft, self._folder / name)
        except FileExistsError:
            return self.read(name) == text
        finally:
            Path(draft).unlink()
        return True

    def read(self, name: str) -> str | None:
        """Return a note's text; None where there is no such note."""
        try:
            with (self._folder / name).open(errors="replace") as file:
                return file.read(_LONGEST)
        except FileNotFoundError:
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedClaims, (self._folder,)


def _remove_folder(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not at the end of a process that was forked
        shutil.rmtree(folder, ignore_errors=True)
