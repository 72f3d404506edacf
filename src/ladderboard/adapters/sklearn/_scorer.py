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
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ladderboard import _settings
from ladderboard._atomic_file import atomic_write
from ladderboard.adapters import import_library
from ladderboard.errors import BudgetSpent, InvalidSetting
from ladderboard.holdout import Judge, Judgement

if TYPE_CHECKING:
    from ladderboard.holdout import Guard, Reply


Response = Literal["predict", "predict_proba"] | Callable[[Any, Any], Any]
_RESPONSES = ("predict", "predict_proba")
_MAX_CLAIM_LENGTH = 200
_WORST = -1.0
# Claims hold the key of a reason, not its text: other users may be able to write in the folder.
_REASONS = {
    "fold": "A guard is asked once about a candidate, not once for each fold: give the search one "
    "split, cv=[(np.arange(len(X)), [0])], and leave out return_train_score; or search on a score "
    "of your own and call judge_search. This scorer refuses everything now: make a new one.",
    "candidate": "A guard is asked once about a candidate; this scorer was called again for the "
    "same parameters, and the model made other predictions. Give the search one split, as in "
    "cv=[(np.arange(len(X)), [0])], and the estimator a random_state. Parameters that cannot be "
    "pickled, such as functions of a notebook, are compared by their code.",
    "unknown": "A guard is asked once about a candidate, and this one cannot be recognised: the "
    "rows of the search, or the predictions, cannot be pickled. Give arrays or frames.",
}
_UNKNOWN_CLAIM = (
    "The scorer's folder holds a file that no scorer wrote. Give a folder that only you use."
)


class SearchStopped(BaseException):
    """Ends a search that a :class:`GuardScorer` cannot score.

    Not an ``Exception``: scikit-learn would turn that into a warning and a score of NaN, and then
    choose an arbitrary model.
    """


class GuardScorer:
    """A scorer, for ``scoring=``, that asks the guard about a candidate once, not for each fold.

    The score is minus the released value for a model that improved, and -1 for every other model.
    So the last model that improved has the best score, in any order of the candidates. Use it for a
    fixed list of candidates: an adaptive search cannot optimise this score. A second fold ends the
    search with :class:`SearchStopped`, whatever its ``error_score``; after it the scorer refuses
    everything, in all processes. Once the budget is spent, every candidate has -1, and one warning
    says so.

    Parameters
    ----------
    guard
        The guard to ask.
    X_holdout
        The holdout's inputs, in the guard's order.
    response
        ``"predict"``, ``"predict_proba"``, or a function of the model and ``X_holdout``.
    folder
        A folder in which the processes of a search record what they asked; by default a temporary
        one. Processes on several machines need a shared folder.
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
        if hasattr(guard, "check_ladder"):  # refuse now, before a model is trained
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
        """Score a fitted candidate; ``X`` only serves to recognise a second fold.

        ``y`` and the weights belong to the search's rows, not to the holdout, and are not used.
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
    def budget_spent(self) -> bool:
        """Whether the budget was found to be spent."""
        return self._claims.read("spent") is not None

    def winner(self, results: Any) -> int:
        """Return the index in ``cv_results_`` of the last candidate that improved.

        For ``refit=scorer.winner``: if no candidate improved, the search then ends with an error
        and not with an arbitrary model.
        """
        self._raise_if_refused()
        scores = np.asarray(results["mean_test_score"], dtype=float)
        finite_scores = np.where(np.isfinite(scores), scores, _WORST)
        if not np.any(finite_scores > _WORST):
            raise InvalidSetting(
                f"None of the {len(finite_scores)} candidates improved on the guard's best, so "
                "there is no winner. With refit=False the search keeps its cv_results_."
            )
        return int(finite_scores.argmax())

    def _raise_if_refused(self) -> None:
        refused = self._claims.read("refused")
        if refused is not None:
            raise SearchStopped(_REASONS.get(refused, _UNKNOWN_CLAIM))

    def _claim(self, kind: str, value: Any, suffix: str = "") -> None:
        text = _joblib_hash(value)
        if text is None or not self._claims.claim(f"{kind}{suffix}", text):
            reason = "unknown" if text is None else kind
            self._claims.claim("refused", reason)
            raise SearchStopped(_REASONS[reason])


def _score_of_reply(reply: Reply) -> float:
    if not reply.improved:
        return _WORST
    if reply.loss is None:  # OneBit withholds it, but a later improvement is better
        return -1.0 / (1 + reply.question)
    return -reply.loss


def _candidate_key(estimator: Any) -> str:
    """Return a key of a candidate's parameters, without what it learnt."""
    unfitted, params = None, {}
    # A custom model may have no parameters; then its class is the key.
    with suppress(Exception):
        unfitted = import_library("sklearn.base", extra="sklearn").clone(estimator)
        params = unfitted.get_params()
    name = _joblib_hash(unfitted)
    if name is None:
        hashes = {
            param: _joblib_hash(value) or _code_fingerprint(value)
            for param, value in params.items()
        }
        name = str(_joblib_hash((_code_fingerprint(estimator), hashes)))
    return name


def _code_fingerprint(value: Any) -> tuple[str, ...]:
    """Return a fingerprint, equal in all processes, of an object that cannot be pickled."""
    code = getattr(value, "__code__", None)
    values = [
        constant
        for constant in getattr(code, "co_consts", ())
        if not isinstance(constant, CodeType)
    ]
    name = getattr(value, "__qualname__", "")
    return (
        type(value).__qualname__,
        name,
        str(getattr(code, "co_code", "")),
        str(_joblib_hash(values)),
    )


def _joblib_hash(value: Any) -> str | None:
    """Return a hash that is equal in all processes; None if the object cannot be pickled."""
    if value is None:
        return None
    if hasattr(value, "to_numpy"):  # a frame's hash may depend on how it was built
        value = value.to_numpy()
    if isinstance(value, np.ndarray):
        value = np.array(value)  # a memory map shared by workers would have another hash
    try:
        return str(import_library("joblib", extra="sklearn").hash(value))
    except Exception:  # noqa: BLE001 - a lambda among the parameters, or a class of a notebook
        return None


def response_function(response: Any) -> Callable[[Any, Any], Any]:
    """Return a function of the model and the holdout's inputs that returns the predictions."""
    if callable(response):
        return response
    if response not in _RESPONSES:
        raise InvalidSetting(
            'response must be "predict", "predict_proba" or a function of the model and the '
            f"holdout's inputs; got {_settings.safe_repr(response)}."
        )
    return lambda model, inputs: getattr(model, response)(inputs)


class SharedClaims:
    """Short texts under names, in a folder; the first process to claim a name sets its text.

    Parameters
    ----------
    folder
        The folder; by default a temporary one, which is deleted with this object. Copies of this
        object, in other processes too, use the same folder.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        if folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="ladderboard-"))
            weakref.finalize(self, _remove_folder, self._folder, os.getpid())
        else:
            self._folder = Path(folder).absolute()
            self._folder.mkdir(parents=True, exist_ok=True)

    def claim(self, name: str, text: str) -> bool:
        """Set the text of a name if it has none; return whether its text is this one."""
        try:
            atomic_write(self._folder / name, text.encode(), replace=False)
        except FileExistsError:
            return self.read(name) == text
        return True

    def read(self, name: str) -> str | None:
        """Return a name's text; None if it was not claimed."""
        try:
            with (self._folder / name).open(errors="replace") as file:
                return file.read(_MAX_CLAIM_LENGTH)
        except FileNotFoundError:
            return None

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedClaims, (self._folder,)


def _remove_folder(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not when a forked process exits
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class JudgedSearch:
    """A search as the guard judged it.

    Parameters
    ----------
    judgements
        The judgements on candidates, in the order of the questions; a judgement's ``name`` is the
        candidate's index in ``cv_results_``, its ``score`` the search's own.
    index
        The winner's index in ``cv_results_``; None if no candidate improved.
    params
        The winner's parameters.
    estimator
        The winner itself, fitted: the very model that was asked about.
    budget_spent
        Whether the budget ended before the candidates did.
    """

    judgements: tuple[Judgement, ...]
    index: int | None
    params: dict[str, Any] | None
    estimator: Any
    budget_spent: bool


def judge_search(
    search: Any,
    guard: Guard,
    X_holdout: Any,  # noqa: N803 - as scikit-learn writes it
    X: Any,  # noqa: N803
    y: Any = None,
    *,
    response: Response = "predict",
    min_delta: float = 0.0,
    **fit_params: Any,
) -> JudgedSearch:
    """Ask about the candidates of a fitted search that set a record of its own score.

    Candidates are considered in the order of ``cv_results_``; one that sets a record is fitted on
    all of ``X, y`` and asked about. The winner is the last that improved. Once the budget is spent,
    no more candidates are fitted.

    Parameters
    ----------
    search
        A ``GridSearchCV``, a ``RandomizedSearchCV``, or any object with ``estimator`` and
        ``cv_results_``; with several metrics, ``refit`` names the one that counts.
    guard
        The guard to ask.
    X_holdout
        The holdout's inputs, in the guard's order.
    X, y
        The data to fit candidates on.
    response
        ``"predict"``, ``"predict_proba"``, or a function of the model and ``X_holdout``.
    min_delta
        A score must beat the record by more than this to be asked about.
    fit_params
        Arguments of the estimator's ``fit``.
    """
    clone = import_library("sklearn.base", extra="sklearn").clone
    predict = response_function(response)
    scores = _scores(search)
    judge = Judge(guard, mode="max", min_delta=min_delta)
    models: dict[int, Any] = {}
    candidates = search.cv_results_["params"]
    for index, params in enumerate(candidates):

        def predictions(index: int = index, params: Any = params) -> Any:
            model = clone(search.estimator).set_params(**clone(params, safe=False))
            models[index] = model.fit(X, y, **fit_params)
            return predict(model, X_holdout)

        judgement = judge.consider(float(scores[index]), predictions, name=index)
        if judgement is None or not judgement.improved:
            models.pop(index, None)
    winner = judge.winner
    if winner is None:
        return JudgedSearch(judge.judgements, None, None, None, judge.budget_spent)
    return JudgedSearch(
        judge.judgements,
        winner.name,
        dict(candidates[winner.name]),
        models[winner.name],
        judge.budget_spent,
    )


def _scores(search: Any) -> Any:
    """Return the search's own score of every candidate; more is better."""
    results = getattr(search, "cv_results_", None)
    if results is None:
        raise InvalidSetting(
            "judge_search needs a fitted search; this one is not. Call search.fit(X, y) first."
        )
    metric = search.refit if isinstance(getattr(search, "refit", None), str) else "score"
    if f"mean_test_{metric}" not in results:
        raise InvalidSetting(
            "This search has several metrics and does not say which one counts. "
            'Name it, as in refit="accuracy".'
        )
    return results[f"mean_test_{metric}"]
